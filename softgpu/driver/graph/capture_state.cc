#include "softgpu/driver/graph/capture_state.h"

#include <algorithm>

namespace softgpu::graph {

CaptureState::CaptureState(CaptureMode mode, StreamKey origin, ThreadKey thread, Links first)
    : mode_(mode), origin_(origin), thread_(thread), streams_{{origin, std::move(first)}} {}

void CaptureState::advance(StreamKey stream, NodeId node) {
  streams_.at(stream) = {{node, {}}};
}

void CaptureState::join(StreamKey stream, const Links& event) {
  Links& next = streams_[stream];
  for (const auto& link : event) {
    const bool known = std::any_of(next.begin(), next.end(), [&](const auto& own) { return own.node == link.node; });
    if (!known) next.push_back(link);
  }
}

void CaptureState::set_next(StreamKey stream, Links links) {
  streams_.at(stream) = std::move(links);
}

void CaptureState::forget(StreamKey stream) {
  streams_.erase(stream);
  invalidate();
}

bool CaptureState::prohibits(ThreadKey thread, CaptureMode thread_mode) const {
  if (thread_mode == CaptureMode::kRelaxed || mode_ == CaptureMode::kRelaxed) return false;
  return thread == thread_ || (thread_mode == CaptureMode::kGlobal && mode_ == CaptureMode::kGlobal);
}

CaptureState::End CaptureState::end(StreamKey stream, ThreadKey thread, const Topology& graph) const {
  if (stream != origin_) return End::kUnmatched;
  if (mode_ != CaptureMode::kRelaxed && thread != thread_) return End::kWrongThread;
  if (!valid_) return End::kInvalidated;
  return joined(graph) ? End::kDone : End::kUnjoined;
}

bool CaptureState::joined(const Topology& graph) const {
  std::vector<NodeId> ends;
  for (const auto& link : streams_.at(origin_)) ends.push_back(link.node);
  const std::vector<NodeId> before = graph.ancestors(ends);
  return std::all_of(streams_.begin(), streams_.end(), [&](const auto& entry) {
    return std::all_of(entry.second.begin(), entry.second.end(),
                       [&](const auto& link) { return std::binary_search(before.begin(), before.end(), link.node); });
  });
}

}  // namespace softgpu::graph
