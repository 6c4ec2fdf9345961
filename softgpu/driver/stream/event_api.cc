// Events.
#include "softgpu/device/time/busy_meter.h"
#include "softgpu/driver/stream/capture.h"
#include "softgpu/driver/stream/shared_event.h"
#include "softgpu/driver/stream/stream_handle.h"
#include "softgpu/mutex.h"

using softgpu::Events;
using softgpu::healthy_context;
using softgpu::monotonic_ns;
using softgpu::StreamUse;

namespace {

using Record = CUevent_st::Record;

constexpr unsigned kEventFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

CUresult check_event(CUevent event) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return Events::valid(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  CUcontext context = nullptr;
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
  if ((flags & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (shared && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_context(context));
  std::optional<softgpu::SharedEvents::Name> name;
  if (shared) {
    softgpu::SharedEvents* events = softgpu::shared_events();
    if (events != nullptr) name = events->create();
    if (!name) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUevent made = Events::take();
  made->flags = flags;
  made->context = context;
  made->shared = name;
  *event = made;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  SOFTGPU_TRY(check_event(event));
  {
    const softgpu::LockGuard guard(event->mutex);
    event->record.reset();
    event->captured.reset();
  }
  if (event->shared) softgpu::shared_events()->destroy(*event->shared);
  Events::give_back(event);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
  return cuEventDestroy_v2(event);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  StreamUse use;
  const bool external = flags == CU_EVENT_RECORD_EXTERNAL;
  if (flags != CU_EVENT_RECORD_DEFAULT && !external) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_event(event));
  SOFTGPU_TRY(softgpu::capturable_stream(stream, use));
  if (!use.context->is_of(*event->context)) return CUDA_ERROR_INVALID_HANDLE;
  if (use.capturing) {
    return external ? softgpu::recorder_of(use).record_external(use, event)
                    : softgpu::recorder_of(use).record(use, event);
  }
  if (external) return CUDA_ERROR_INVALID_VALUE;
  if (event->shared) return softgpu::record_shared(event, use);
  const auto record = std::make_shared<Record>();
  if (use.context->streams().idle()) {
    record->time_ns = monotonic_ns();
  } else {
    // The stream holds the operation, so the operation may not hold the stream through the record's point.
    const std::weak_ptr<Record> weak = record;
    record->point = use.context->streams().submit(*use.stream, [weak] {
      if (const auto held = weak.lock()) held->time_ns = monotonic_ns();
    });
  }
  const softgpu::LockGuard guard(event->mutex);
  event->record = record;
  event->captured.reset();
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult cuEventQuery(CUevent event) {
  SOFTGPU_TRY(check_event(event));
  SOFTGPU_TRY(softgpu::refuse_captured(event));
  SOFTGPU_TRY(softgpu::refuse_unsafe_call());
  const auto record = event->last_record();
  SOFTGPU_TRY(event->context->fault());
  if (event->shared) {
    const softgpu::SharedEvents& events = *softgpu::shared_events();
    return events.reached(*event->shared, events.last(*event->shared)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  return record == nullptr || record->point.reached() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event) {
  SOFTGPU_TRY(check_event(event));
  SOFTGPU_TRY(softgpu::refuse_captured(event));
  SOFTGPU_TRY(softgpu::refuse_unsafe_call());
  const auto record = event->last_record();
  if (record != nullptr && record->point.stream != nullptr) {
    record->point.stream->wait_helping(record->point.sequence);
  }
  if (event->shared) softgpu::wait_shared(event);
  event->context->prints().flush();
  return event->context->fault();
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_event(begin));
  SOFTGPU_TRY(check_event(end));
  SOFTGPU_TRY(softgpu::refuse_captured(begin));
  SOFTGPU_TRY(softgpu::refuse_captured(end));
  const auto first = begin->last_record();
  const auto last = end->last_record();
  const bool timed = ((begin->flags | end->flags) & CU_EVENT_DISABLE_TIMING) == 0;
  if (first == nullptr || last == nullptr || !timed) return CUDA_ERROR_INVALID_HANDLE;
  if (!first->point.reached() || !last->point.reached()) return CUDA_ERROR_NOT_READY;
  SOFTGPU_TRY(begin->context->fault());
  const auto elapsed_ns = static_cast<std::int64_t>(last->time_ns.load() - first->time_ns.load());
  *milliseconds = static_cast<float>(elapsed_ns) / 1e6F;
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, begin, end);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  StreamUse use;
  bool captured = false;
  if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_event(event));
  SOFTGPU_TRY(softgpu::capturable_stream(stream, use));
  if (flags == CU_EVENT_WAIT_EXTERNAL) {
    if (!use.capturing) return CUDA_ERROR_INVALID_VALUE;
    return softgpu::recorder_of(use).wait_external(use, event);
  }
  if (auto* recorder = softgpu::capture_recorder()) SOFTGPU_TRY(recorder->wait(use, event, captured));
  if (captured) return CUDA_SUCCESS;
  if (event->shared) {
    softgpu::queue_wait_shared(event, use);
    return CUDA_SUCCESS;
  }
  const auto record = event->last_record();
  if (record == nullptr || record->point.reached()) return CUDA_SUCCESS;
  use.context->streams().submit(*use.stream, [] {}, {record->point});
  return CUDA_SUCCESS;
}
