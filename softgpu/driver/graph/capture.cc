// What streams hand to the recorder becomes nodes of graphs.
#include <algorithm>

#include "softgpu/driver/graph/captures.h"
#include "softgpu/driver/graph/parameters.h"
#include "softgpu/mutex.h"

namespace softgpu::graph {
namespace {

std::atomic<unsigned> g_ongoing{0};
std::atomic<ThreadKey> g_next_thread{1};

// REQUIRES: the lock of captures.
CUresult invalid(Capture& capture, CUresult error) {
  capture.state.invalidate();
  return error;
}

// Ends a capture that nobody can end any more.
void discard(Captures& captures, Capture& capture) SOFTGPU_REQUIRES(captures.mutex) {
  capture.state.invalidate();
  captures.end(capture);
  if (capture.owns_graph) destroy_graph(capture.graph);
}

std::shared_ptr<CapturedRecord> captured_record(CUevent event) {
  const LockGuard guard(event->mutex);
  return event->captured;
}

CUresult append(Capture& capture, const Stream& stream, Payload payload) {
  CUgraphNode node = nullptr;
  SOFTGPU_TRY(add_node(capture.graph, capture.state.next(&stream), std::move(payload), node));
  capture.state.advance(&stream, node->id);
  return CUDA_SUCCESS;
}

// Runs `act` on the stream's capture, under the lock.
template <typename Act>
CUresult with_capture(const StreamUse& use, Act act) {
  Captures& captures = Captures::get();
  const LockGuard guard(captures.mutex);
  const auto capture = captures.of(*use.stream);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  return capture->state.valid() ? act(*capture) : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

// The one recorder of the process: it knows all captures.
class GraphRecorder final : public CaptureRecorder {
 public:
  CUresult find(StreamUse& use) override;
  CUresult refuse_capturing(const StreamUse& use) override;
  CUresult refuse_unsafe_call() override;
  CUresult refuse_synchronising(CUcontext context) override;
  CUresult refuse_captured(CUevent event) override;

  CUresult launch(const StreamUse& use, KernelLaunch kernel) override;
  CUresult copy(const StreamUse& use, const CUDA_MEMCPY3D& shape) override {
    return capture_operation(use, Copy{shape, use.context});
  }
  CUresult fill(const StreamUse& use, const CUDA_MEMSET_NODE_PARAMS_v2& fill) override {
    return capture_operation(use, fill);
  }
  CUresult call_host(const StreamUse& use, const CUDA_HOST_NODE_PARAMS& call) override {
    return capture_operation(use, call);
  }
  CUresult memory_operations(const StreamUse& use, std::vector<CUstreamBatchMemOpParams> operations,
                             unsigned flags) override {
    return capture_operation(use, MemoryOperations{use.context, std::move(operations), flags});
  }
  CUresult allocate(const StreamUse& use, std::uint64_t bytes, CUdeviceptr& address) override;
  CUresult free(const StreamUse& use, CUdeviceptr address) override;
  CUresult record_external(const StreamUse& use, CUevent event) override {
    return capture_operation(use, EventRecord{event});
  }
  CUresult wait_external(const StreamUse& use, CUevent event) override {
    return capture_operation(use, EventWait{event});
  }

  CUresult record(const StreamUse& use, CUevent event) override;
  CUresult wait(const StreamUse& use, CUevent event, bool& captured) override;
  void abandon_stream(const Stream& stream) override;
};

// Whether any capture is going on: if not, no lock need be taken.
bool any_capture() {
  return g_ongoing.load(std::memory_order_acquire) != 0;
}

}  // namespace

ThreadKey this_thread() {
  static thread_local const ThreadKey key = g_next_thread.fetch_add(1);
  return key;
}

CUstreamCaptureMode& thread_mode() {
  static thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

Captures& Captures::get() {
  static auto* instance = new Captures;  // outlives the threads of streams
  return *instance;
}

std::shared_ptr<Capture> Captures::of(const Stream& stream) const {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& capture) { return capture->state.contains(&stream); });
  return found != all.end() ? *found : nullptr;
}

bool Captures::ongoing(const Capture& capture) const {
  return std::any_of(all.begin(), all.end(), [&](const auto& other) { return other.get() == &capture; });
}

std::shared_ptr<Capture> Captures::beside_legacy(const StreamUse& use) const {
  if (use.stream->kind != Stream::Kind::kLegacy) return nullptr;
  for (const auto& capture : all) {
    if (capture->context != use.context || capture->context_id != use.context->id()) continue;
    for (const auto& [key, stream] : capture->streams) {
      if (stream->kind == Stream::Kind::kBlocking) return capture;
    }
  }
  return nullptr;
}

void Captures::begin(const std::shared_ptr<Capture>& capture) {
  static auto* recorder = new GraphRecorder;  // outlives the threads of streams
  set_capture_recorder(*recorder);
  capture->context->part<ContextCaptures>();  // which ends them with the context
  all.push_back(capture);
  capture->graph->capturing = true;
  g_ongoing.fetch_add(1, std::memory_order_release);
}

void Captures::end(const Capture& capture) {
  capture.graph->capturing = false;
  std::erase_if(all, [&](const auto& other) { return other.get() == &capture; });
  g_ongoing.fetch_sub(1, std::memory_order_release);
}

CUresult capture_operation(const StreamUse& use, Payload payload) {
  return with_capture(use, [&](Capture& capture) { return append(capture, *use.stream, std::move(payload)); });
}

void ContextCaptures::close() {
  if (!any_capture()) return;
  Captures& captures = Captures::get();
  const LockGuard guard(captures.mutex);
  const auto all = captures.all;
  for (const auto& capture : all) {
    if (capture->context == &context_) discard(captures, *capture);
  }
}

CUresult GraphRecorder::find(StreamUse& use) {
  if (!any_capture()) return CUDA_SUCCESS;
  Captures& captures = Captures::get();
  const LockGuard guard(captures.mutex);
  if (const auto capture = captures.of(*use.stream)) {
    use.capturing = true;
    return capture->state.valid() ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  const auto beside = captures.beside_legacy(use);
  return beside == nullptr ? CUDA_SUCCESS : invalid(*beside, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult GraphRecorder::refuse_capturing(const StreamUse& use) {
  if (!any_capture()) return CUDA_SUCCESS;
  Captures& captures = Captures::get();
  const LockGuard guard(captures.mutex);
  if (const auto capture = captures.of(*use.stream)) return invalid(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const auto beside = captures.beside_legacy(use);
  return beside == nullptr ? CUDA_SUCCESS : invalid(*beside, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult GraphRecorder::refuse_unsafe_call() {
  if (!any_capture()) return CUDA_SUCCESS;
  Captures& captures = Captures::get();
  const LockGuard guard(captures.mutex);
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : captures.all) {
    if (!capture->state.prohibits(this_thread(), static_cast<CaptureMode>(thread_mode()))) continue;
    result = invalid(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return result;
}

CUresult GraphRecorder::refuse_synchronising(CUcontext context) {
  if (!any_capture()) return CUDA_SUCCESS;
  Captures& captures = Captures::get();
  const LockGuard guard(captures.mutex);
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : captures.all) {
    if (capture->context != context || capture->context_id != context->id()) continue;
    result = invalid(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return result;
}

CUresult GraphRecorder::refuse_captured(CUevent event) {
  const auto record = captured_record(event);
  if (record == nullptr) return CUDA_SUCCESS;
  const LockGuard guard(Captures::get().mutex);
  return invalid(*record->capture, CUDA_ERROR_CAPTURED_EVENT);
}

CUresult GraphRecorder::launch(const StreamUse& use, KernelLaunch kernel) {
  if (use.stream->priority != 0) {
    CUlaunchAttributeValue value = {};
    value.priority = use.stream->priority;
    kernel.attributes.emplace(CU_LAUNCH_ATTRIBUTE_PRIORITY, value);
  }
  return capture_operation(use, std::move(kernel));
}

CUresult GraphRecorder::allocate(const StreamUse& use, std::uint64_t bytes, CUdeviceptr& address) {
  return with_capture(use, [&](Capture& capture) {
    Payload payload;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, use.context->owner().ordinal};
    parameters.bytesize = bytes;
    SOFTGPU_TRY(read_allocate(capture.graph, &parameters, payload));
    SOFTGPU_TRY(append(capture, *use.stream, std::move(payload)));
    address = parameters.dptr;
    return CUDA_SUCCESS;
  });
}

CUresult GraphRecorder::free(const StreamUse& use, CUdeviceptr address) {
  return with_capture(use, [&](Capture& capture) {
    Payload payload;
    SOFTGPU_TRY(read_free(capture.graph, address, payload));
    return append(capture, *use.stream, std::move(payload));
  });
}

CUresult GraphRecorder::record(const StreamUse& use, CUevent event) {
  return with_capture(use, [&](Capture& capture) {
    auto record = std::make_shared<CapturedRecord>();
    record->capture = capture.shared_from_this();
    record->links = capture.state.next(use.stream.get());
    const LockGuard guard(event->mutex);
    event->captured = std::move(record);
    event->record.reset();
    return CUDA_SUCCESS;
  });
}

CUresult GraphRecorder::wait(const StreamUse& use, CUevent event, bool& captured) {
  const auto record = captured_record(event);
  captured = record != nullptr || use.capturing;
  if (!captured) return CUDA_SUCCESS;
  Captures& captures = Captures::get();
  const LockGuard guard(captures.mutex);
  const auto own = captures.of(*use.stream);
  if (record == nullptr) return invalid(*own, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  Capture& other = *record->capture;
  if (!captures.ongoing(other)) {
    return own != nullptr ? invalid(*own, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_ERROR_CAPTURED_EVENT;
  }
  if (use.stream->kind == Stream::Kind::kLegacy) return invalid(other, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (own != nullptr && own.get() != &other) {
    invalid(*own, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    return invalid(other, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (!other.state.valid()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  other.state.join(use.stream.get(), record->links);
  other.streams[use.stream.get()] = use.stream;
  return CUDA_SUCCESS;
}

void GraphRecorder::abandon_stream(const Stream& stream) {
  if (!any_capture()) return;
  Captures& captures = Captures::get();
  const LockGuard guard(captures.mutex);
  const auto capture = captures.of(stream);
  if (capture == nullptr) return;
  capture->state.forget(&stream);
  capture->streams.erase(&stream);
  // With its last stream a capture can no longer be ended by anyone.
  if (capture->streams.empty()) discard(captures, *capture);
}

}  // namespace softgpu::graph
