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
  if (!softgpu::Events::valid(event) || !event->context->is_of(*context)) return CUDA_ERROR_INVALID_HANDLE;
  SOFTGPU_TRY(context->fault());
  SOFTGPU_TRY(softgpu::refuse_synchronising(context));
  const auto record = std::make_shared<CUevent_st::Record>();
  // What is shown for a green context has streams of its own; those of the green context are waited for on one that ends with this.
  std::shared_ptr<softgpu::Stream> join;
  if (context->green != nullptr) {
    join = context->streams().make(softgpu::Stream::Kind::kNonBlocking, 0);
    std::vector<softgpu::Point> after;
    for (const auto& stream : context->green->all()) after.push_back(stream->last());
    context->streams().submit(
        *join, [] {}, std::move(after));
  }
  record->point = context->streams().submit_after_all([weak = std::weak_ptr<CUevent_st::Record>(record)] {
    if (const auto held = weak.lock()) held->time_ns = softgpu::monotonic_ns();
  });
  if (join != nullptr) context->streams().close(join);
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
  const auto record = event->last_record();
  if (record == nullptr) return CUDA_SUCCESS;
  context->streams().hold_all(record->point);
  if (context->green == nullptr || record->point.reached()) return CUDA_SUCCESS;
  SOFTGPU_TRY(softgpu::refuse_synchronising(context->primary));
  for (const auto& stream : context->green->all()) {
    context->primary->streams().submit(*stream, [] {}, {record->point});
  }
  return CUDA_SUCCESS;
}
