// Streams.
#include <algorithm>

#include "softgpu/driver/graph/capture.h"
#include "softgpu/driver/memory/pool.h"
#include "softgpu/driver/stream/stream_handle.h"

using softgpu::current_context;
using softgpu::healthy_context;
using softgpu::healthy_stream;
using softgpu::Point;
using softgpu::resolve_stream;
using softgpu::Stream;
using softgpu::Streams;
using softgpu::StreamUse;

namespace {

thread_local int t_per_thread_depth = 0;

constexpr int kGreatestPriority = -5;

}  // namespace

namespace softgpu {

PerThreadDefault::PerThreadDefault() {
  ++t_per_thread_depth;
}
PerThreadDefault::~PerThreadDefault() {
  --t_per_thread_depth;
}

CUresult resolve_stream(CUstream handle, StreamUse& use) {
  const bool per_thread = handle == CU_STREAM_PER_THREAD || (handle == nullptr && t_per_thread_depth > 0);
  if (handle == nullptr || handle == CU_STREAM_LEGACY || per_thread) {
    SOFTGPU_TRY(current_context(use.context));
    use.stream = per_thread ? use.context->per_thread_stream() : use.context->legacy_stream();
    return CUDA_SUCCESS;
  }
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Streams::valid(handle)) return CUDA_ERROR_INVALID_HANDLE;
  use.context = handle->context;
  use.stream = handle->stream;
  const bool same_activation = use.context->active() && use.context->id() == handle->context_id;
  return same_activation ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult healthy_stream(CUstream handle, StreamUse& use) {
  SOFTGPU_TRY(resolve_stream(handle, use));
  SOFTGPU_TRY(use.context->fault());
  return graph::refuse_capturing(use);
}

CUresult capturable_stream(CUstream handle, StreamUse& use) {
  SOFTGPU_TRY(resolve_stream(handle, use));
  SOFTGPU_TRY(use.context->fault());
  return graph::find_capture(use);
}

CUresult uncaptured_context(CUcontext& context) {
  SOFTGPU_TRY(healthy_context(context));
  return graph::refuse_unsafe_call();
}

}  // namespace softgpu

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  CUcontext context = nullptr;
  if (stream == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(healthy_context(context));
  const auto kind = flags == CU_STREAM_NON_BLOCKING ? Stream::Kind::kNonBlocking : Stream::Kind::kBlocking;
  CUstream made = Streams::take();
  made->context = context;
  made->context_id = context->id();
  made->stream = context->make_stream(kind, std::clamp(priority, kGreatestPriority, 0));
  *stream = made;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) return CUDA_ERROR_INVALID_HANDLE;
  if (!Streams::valid(handle)) return CUDA_ERROR_INVALID_HANDLE;
  softgpu::graph::abandon_stream(*handle->stream);
  handle->context->close_stream(handle->stream);
  handle->stream.reset();
  Streams::give_back(handle);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream handle) {
  return cuStreamDestroy_v2(handle);
}

CUresult cuStreamQuery(CUstream handle) {
  StreamUse use;
  SOFTGPU_TRY(healthy_stream(handle, use));
  if (use.context->stream_idle(*use.stream)) return use.context->fault();
  return CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream handle) {
  StreamUse use;
  SOFTGPU_TRY(resolve_stream(handle, use));
  SOFTGPU_TRY(softgpu::graph::refuse_capturing(use));
  // The legacy stream ends after all blocking streams: an empty operation waits for them.
  if (use.stream->kind == Stream::Kind::kLegacy && !use.context->idle()) use.context->submit(*use.stream, [] {});
  use.stream->wait_helping(use.stream->submitted());
  softgpu::Pools::instance().after_synchronise();
  use.context->prints().flush();
  return use.context->fault();
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* user_data, unsigned flags) {
  StreamUse use;
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_stream(handle, use));
  CUcontext context = use.context;
  context->submit(*use.stream, [=] {
    context->prints().flush();
    callback(handle, context->fault(), user_data);
  });
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned* flags) {
  StreamUse use;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_stream(handle, use));
  *flags = use.stream->kind == Stream::Kind::kNonBlocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  StreamUse use;
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_stream(handle, use));
  *priority = use.stream->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  StreamUse use;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_stream(handle, use));
  *context = use.context;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  StreamUse use;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_stream(handle, use));
  *id = use.context->id() << 32 | use.stream->id;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  StreamUse use;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_stream(handle, use));
  *device = use.context->owner().ordinal;
  return CUDA_SUCCESS;
}
