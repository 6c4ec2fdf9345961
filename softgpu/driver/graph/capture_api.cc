// Stream capture: beginning, ending and asking about it.
#include "softgpu/driver/graph/captures.h"
#include "softgpu/mutex.h"

using softgpu::StreamUse;
using softgpu::graph::Capture;
using softgpu::graph::CaptureMode;
using softgpu::graph::Captures;
using softgpu::graph::CaptureState;
using softgpu::graph::check_graph;
using softgpu::graph::Links;

namespace {

bool is_mode(CUstreamCaptureMode mode) {
  return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

// Captures the stream into `graph`, or into a new graph when that is null.
CUresult begin(CUstream handle, CUstreamCaptureMode mode, CUgraph graph, Links first) {
  StreamUse use;
  if (!is_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::resolve_stream(handle, use));
  SOFTGPU_TRY(use.context->fault());
  if (use.stream->kind == softgpu::Stream::Kind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Captures& captures = Captures::get();
  const softgpu::LockGuard guard(captures.mutex);
  if (captures.of(*use.stream) != nullptr || (graph != nullptr && graph->capturing)) return CUDA_ERROR_ILLEGAL_STATE;
  CaptureState state(static_cast<CaptureMode>(mode), use.stream.get(), softgpu::graph::this_thread(), std::move(first));
  const auto capture = std::make_shared<Capture>(std::move(state), captures.next_id++);
  capture->graph = graph != nullptr ? graph : softgpu::graph::make_graph();
  capture->owns_graph = graph == nullptr;
  capture->context = use.context;
  capture->context_id = use.context->id();
  capture->streams[use.stream.get()] = use.stream;
  captures.begin(capture);
  return CUDA_SUCCESS;
}

CUresult result_of(CaptureState::End end) {
  switch (end) {
    case CaptureState::End::kDone: return CUDA_SUCCESS;
    case CaptureState::End::kUnmatched: return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    case CaptureState::End::kWrongThread: return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    case CaptureState::End::kInvalidated: return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    case CaptureState::End::kUnjoined: return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  return CUDA_ERROR_UNKNOWN;
}

// The stream's capture, or null; IMPLICIT for the legacy stream beside one.
CUresult look_up(const Captures& captures, const StreamUse& use, std::shared_ptr<Capture>& capture)
    SOFTGPU_REQUIRES(captures.mutex) {
  capture = captures.of(*use.stream);
  return captures.beside_legacy(use) == nullptr ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUstreamCaptureStatus status_of(const Capture* capture) {
  if (capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return capture->state.valid() ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

struct InfoRequest {
  CUstreamCaptureStatus* status = nullptr;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  size_t* count = nullptr;
};

CUresult report_next(Capture& capture, const StreamUse& use, const InfoRequest& request) {
  capture.reported_nodes.clear();
  capture.reported_edges.clear();
  for (const auto& link : capture.state.next(use.stream.get())) {
    if (request.nodes != nullptr && request.edges == nullptr && link.data != softgpu::graph::EdgeData{}) {
      return CUDA_ERROR_LOSSY_QUERY;
    }
    capture.reported_nodes.push_back(capture.graph->node(link.node));
    capture.reported_edges.push_back(softgpu::graph::write_edge(link.data));
  }
  if (request.nodes != nullptr) *request.nodes = capture.reported_nodes.data();
  if (request.edges != nullptr) *request.edges = capture.reported_edges.data();
  if (request.count != nullptr) *request.count = capture.reported_nodes.size();
  return CUDA_SUCCESS;
}

CUresult get_info(CUstream handle, const InfoRequest& request) {
  StreamUse use;
  std::shared_ptr<Capture> capture;
  if (request.status == nullptr || (request.edges != nullptr && request.nodes == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(softgpu::resolve_stream(handle, use));
  Captures& captures = Captures::get();
  const softgpu::LockGuard guard(captures.mutex);
  SOFTGPU_TRY(look_up(captures, use, capture));
  *request.status = status_of(capture.get());
  if (*request.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (request.id != nullptr) *request.id = capture->id;
  if (request.graph != nullptr) *request.graph = capture->graph;
  return report_next(*capture, use, request);
}

}  // namespace

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin(stream, mode, nullptr, {});
}

CUresult cuStreamBeginCapture(CUstream stream) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* data, size_t count, CUstreamCaptureMode mode) {
  Links first;
  SOFTGPU_TRY(check_graph(graph));
  SOFTGPU_TRY(softgpu::graph::read_links(graph, dependencies, data, count, first));
  return begin(stream, mode, graph, std::move(first));
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  StreamUse use;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::resolve_stream(handle, use));
  *graph = nullptr;
  Captures& captures = Captures::get();
  const softgpu::LockGuard guard(captures.mutex);
  const auto capture = captures.of(*use.stream);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  const CaptureState::End end =
      capture->state.end(use.stream.get(), softgpu::graph::this_thread(), capture->graph->topology);
  if (end == CaptureState::End::kUnmatched || end == CaptureState::End::kWrongThread) return result_of(end);
  captures.end(*capture);
  if (end == CaptureState::End::kDone) {
    *graph = capture->graph;
  } else if (capture->owns_graph) {
    softgpu::graph::destroy_graph(capture->graph);
  }
  return result_of(end);
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return get_info(handle, {status});
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return get_info(stream, {status, id});
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, size_t* count) {
  return get_info(stream, {status, id, graph, dependencies, nullptr, count});
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, const CUgraphEdgeData** data, size_t* count) {
  return get_info(stream, {status, id, graph, dependencies, data, count});
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* dependencies, const CUgraphEdgeData* data,
                                              size_t count, unsigned flags) {
  StreamUse use;
  Links links;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::resolve_stream(handle, use));
  Captures& captures = Captures::get();
  const softgpu::LockGuard guard(captures.mutex);
  const auto capture = captures.of(*use.stream);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (!capture->state.valid()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  SOFTGPU_TRY(softgpu::graph::read_links(capture->graph, dependencies, data, count, links));
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
    capture->state.set_next(use.stream.get(), std::move(links));
  } else {
    capture->state.add_next(use.stream.get(), links);
  }
  return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count, unsigned flags) {
  return cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || !is_mode(*mode)) return CUDA_ERROR_INVALID_VALUE;
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  std::swap(*mode, softgpu::graph::thread_mode());
  return CUDA_SUCCESS;
}
