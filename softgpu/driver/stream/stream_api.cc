// Streams.
#include <algorithm>

#include "softgpu/driver/stream/capture.h"
#include "softgpu/driver/stream/stream_handle.h"
#include "softgpu/thread_owned.h"

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

// The calling thread's default stream in the context.
std::shared_ptr<Stream> per_thread_stream(CUctx_st& context) {
  // Closed when the thread ends or the context does, whichever is first.
  struct Own {
    CUctx_st* context;
    std::uint64_t id;
    std::shared_ptr<Stream> stream;
    ~Own() {
      if (softgpu::Process::get() != nullptr) context->streams().close(stream);  // not in a child of fork
    }
  };
  auto& own = softgpu::thread_owned<std::vector<std::unique_ptr<Own>>>();
  for (const auto& entry : own) {
    if (entry->id == context.id()) return entry->stream;
  }
  std::erase_if(own, [](const auto& entry) { return !entry->context->active() || entry->context->id() != entry->id; });
  own.push_back(
      std::unique_ptr<Own>(new Own{&context, context.id(), context.streams().make(Stream::Kind::kBlocking, 0)}));
  return own.back()->stream;
}

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
    use.stream = per_thread ? per_thread_stream(*use.context) : use.context->streams().legacy();
    return CUDA_SUCCESS;
  }
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Streams::valid(handle)) return CUDA_ERROR_INVALID_HANDLE;
  use.context = handle->context;
  use.stream = handle->stream;
  if (handle->green) {
    if (handle->green->detached) return CUDA_ERROR_STREAM_DETACHED;
    use.most_sms = handle->green->sms;
    use.green = handle->green.get();
  }
  const bool same_activation = use.context->active() && use.context->id() == handle->context_id;
  return same_activation ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult healthy_stream(CUstream handle, StreamUse& use) {
  SOFTGPU_TRY(resolve_stream(handle, use));
  SOFTGPU_TRY(use.context->fault());
  return refuse_capturing(use);
}

CUresult capturable_stream(CUstream handle, StreamUse& use) {
  SOFTGPU_TRY(resolve_stream(handle, use));
  SOFTGPU_TRY(use.context->fault());
  CaptureRecorder* recorder = capture_recorder();
  return recorder != nullptr ? recorder->find(use) : CUDA_SUCCESS;
}

CUresult uncaptured_context(CUcontext& context) {
  SOFTGPU_TRY(healthy_context(context));
  return refuse_unsafe_call();
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
  made->stream = context->streams().make(kind, std::clamp(priority, kGreatestPriority, 0));
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
  if (auto* recorder = softgpu::capture_recorder()) recorder->abandon_stream(*handle->stream);
  handle->context->streams().close(handle->stream);
  handle->stream.reset();
  handle->green.reset();
  Streams::give_back(handle);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream handle) {
  return cuStreamDestroy_v2(handle);
}

CUresult cuStreamQuery(CUstream handle) {
  StreamUse use;
  SOFTGPU_TRY(healthy_stream(handle, use));
  if (use.context->streams().idle(*use.stream)) return use.context->fault();
  return CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream handle) {
  StreamUse use;
  SOFTGPU_TRY(resolve_stream(handle, use));
  SOFTGPU_TRY(softgpu::refuse_capturing(use));
  // The legacy stream ends after all blocking streams: an empty operation waits for them.
  if (use.stream->kind == Stream::Kind::kLegacy && !use.context->streams().idle())
    use.context->streams().submit(*use.stream, [] {});
  use.stream->wait_helping(use.stream->submitted());
  softgpu::after_synchronise();
  use.context->prints().flush();
  return use.context->fault();
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* user_data, unsigned flags) {
  StreamUse use;
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_stream(handle, use));
  CUcontext context = use.context;
  context->streams().submit(*use.stream, [=] {
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
