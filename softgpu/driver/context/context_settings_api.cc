// Settings of the current context: limits, cache and bank preferences, and uses counted by hand.
#include <algorithm>

#include "softgpu/driver/context/context.h"
#include "softgpu/driver/context/kernel_heap.h"

using softgpu::check_context;
using softgpu::current_context;

namespace {

constexpr std::size_t kMaxStackBytes = 512 << 10;
constexpr std::size_t kMaxSyncDepth = 24;
constexpr std::size_t kMaxFetchBytes = 128;

// UNSUPPORTED_LIMIT for what devices of this compute capability do not have, INVALID_VALUE for what CUDA does not.
CUresult check_limit(const softgpu::Profile& profile, CUlimit limit) {
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  bool supported = true;
  switch (limit) {
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH: supported = profile.compute_major < 9; break;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE: supported = profile.compute_major >= 8; break;
    case CU_LIMIT_SHMEM_SIZE:  // these three are of contexts shared with graphics
    case CU_LIMIT_CIG_ENABLED:
    case CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED: supported = false; break;
    default: break;
  }
  return supported ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

CUresult bounded_limit(CUctx_st& context, CUlimit limit, std::size_t& value) {
  const std::size_t memory = context.device().total_bytes();
  switch (limit) {
    case CU_LIMIT_STACK_SIZE: return value <= kMaxStackBytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE: return value <= memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH: return value <= kMaxSyncDepth ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY: return value <= kMaxFetchBytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:  // a hint: as much of it as there is
      value = std::min(value, static_cast<std::size_t>(context.device().profile().l2_kib) << 10);
      return CUDA_SUCCESS;
    default: return CUDA_SUCCESS;
  }
}

}  // namespace

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  CUcontext context = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(current_context(context));
  SOFTGPU_TRY(check_limit(context->device().profile(), limit));
  *value = context->settings.limits[limit];
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(current_context(context));
  SOFTGPU_TRY(check_limit(context->device().profile(), limit));
  SOFTGPU_TRY(bounded_limit(*context, limit, value));
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && context->part<softgpu::KernelHeap>().made())
    return CUDA_ERROR_INVALID_VALUE;
  context->settings.limits[limit] = value;
  if (limit == CU_LIMIT_PRINTF_FIFO_SIZE) context->prints().set_capacity(value);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(current_context(context));
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

// Cache and bank settings are hints that change nothing here.
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  CUcontext context = nullptr;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(current_context(context));
  *config = static_cast<CUfunc_cache>(context->settings.cache_config.load());
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  CUcontext context = nullptr;
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(current_context(context));
  context->settings.cache_config = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  CUcontext context = nullptr;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(current_context(context));
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  CUcontext context = nullptr;
  if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE || config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return current_context(context);
}

CUresult cuCtxResetPersistingL2Cache() {
  CUcontext context = nullptr;
  return current_context(context);
}

// ---- Uses counted by hand, from before contexts were destroyed by name ----

CUresult cuCtxAttach(CUcontext* context, unsigned flags) {
  if (context == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(current_context(*context));
  ++(*context)->attachments;
  return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext context) {
  CUcontext current = nullptr;
  SOFTGPU_TRY(check_context(context));
  SOFTGPU_TRY(current_context(current));
  if (current != context) return CUDA_ERROR_INVALID_CONTEXT;
  int uses = context->attachments.load();
  while (uses != 0) {
    if (context->attachments.compare_exchange_weak(uses, uses - 1)) return CUDA_SUCCESS;
  }
  return cuCtxDestroy_v2(context);
}
