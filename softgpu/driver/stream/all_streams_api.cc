// Calls that concern all streams of a context.
#include "softgpu/driver/stream/capture.h"
#include "softgpu/driver/stream/stream_handle.h"
#include "softgpu/mutex.h"

using softgpu::check_context;
using softgpu::current_context;

CUresult cuCtxSynchronize() {
  CUcontext context = nullptr;
  SOFTGPU_TRY(current_context(context));
  SOFTGPU_TRY(softgpu::refuse_synchronising(context));
  return context->synchronise();
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  if (context == nullptr) return cuCtxSynchronize();
  SOFTGPU_TRY(check_context(context));
  SOFTGPU_TRY(softgpu::refuse_synchronising(context));
  return context->synchronise();
}

CUresult cuCtxRecordEvent(CUcontext context, CUevent event) {
  SOFTGPU_TRY(check_context(context));
  if (!softgpu::Events::valid(event) || event->context != context) return CUDA_ERROR_INVALID_HANDLE;
  SOFTGPU_TRY(context->fault());
  SOFTGPU_TRY(softgpu::refuse_synchronising(context));
  const auto record = std::make_shared<CUevent_st::Record>();
  record->point = context->streams().submit_after_all([weak = std::weak_ptr<CUevent_st::Record>(record)] {
    if (const auto held = weak.lock()) held->time_ns = softgpu::monotonic_ns();
  });
  const softgpu::LockGuard guard(event->mutex);
  event->record = record;
  event->captured.reset();
  return CUDA_SUCCESS;
}

CUresult cuCtxWaitEvent(CUcontext context, CUevent event) {
  SOFTGPU_TRY(check_context(context));
  if (!softgpu::Events::valid(event)) return CUDA_ERROR_INVALID_HANDLE;
  SOFTGPU_TRY(context->fault());
  SOFTGPU_TRY(softgpu::refuse_captured(event));
  SOFTGPU_TRY(softgpu::refuse_synchronising(context));
  if (const auto record = event->last_record()) context->streams().hold_all(record->point);
  return CUDA_SUCCESS;
}
