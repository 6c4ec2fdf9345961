// Functions: attributes and occupancy.
#include <algorithm>

#include "softgpu/driver/module.h"
#include "softgpu/driver/occupancy.h"

using softgpu::Functions;
using softgpu::resolve_function;

namespace {

constexpr unsigned kKnownOccupancyFlags = 1;

int shared_limit(CUfunction function) {
  return static_cast<int>(function->module->context->device().profile().shared_per_block_kib << 10);
}

}  // namespace

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  CUfunction function = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_function(handle, function));
  const softgpu::ptx::KernelInfo& info = function->kernel->info();
  const softgpu::Profile& profile = function->module->context->device().profile();
  const int architecture = profile.compute_major * 10 + profile.compute_minor;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = static_cast<int>(info.max_threads); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(info.static_shared_bytes); break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = static_cast<int>(info.constant_bytes); break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(info.local_bytes); break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = static_cast<int>(std::clamp(info.registers, 1U, 255U)); break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = architecture; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = function->max_dynamic_shared; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = function->carveout; break;
    default:
      if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  CUfunction function = nullptr;
  SOFTGPU_TRY(resolve_function(handle, function));
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const int limit = shared_limit(function) - static_cast<int>(function->kernel->info().static_shared_bytes);
      if (value < 0 || value > limit) return CUDA_ERROR_INVALID_VALUE;
      function->max_dynamic_shared = value;
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      function->carveout = value;
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache) {
  return Functions::valid(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig) {
  return Functions::valid(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
  CUfunction function = nullptr;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_function(handle, function));
  *module = function->module;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction handle) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Functions::valid(handle)) return CUDA_ERROR_INVALID_HANDLE;
  *name = handle->kernel->info().name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Functions::valid(handle)) return CUDA_ERROR_INVALID_HANDLE;
  const auto& parameters = handle->kernel->info().parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].offset;
  if (size != nullptr) *size = parameters[index].size;
  return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Functions::valid(handle)) return CUDA_ERROR_INVALID_HANDLE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction handle) {
  return Functions::valid(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle, int block_size,
                                                              size_t dynamic_shared_bytes, unsigned flags) {
  CUfunction function = nullptr;
  if (blocks == nullptr || block_size <= 0 || (flags & ~kKnownOccupancyFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_function(handle, function));
  *blocks = softgpu::blocks_per_sm(*function, static_cast<unsigned>(block_size), dynamic_shared_bytes);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                     size_t dynamic_shared_bytes) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, dynamic_shared_bytes, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid_size, int* block_size, CUfunction handle,
                                                   CUoccupancyB2DSize shared_of_block, size_t dynamic_shared_bytes,
                                                   int block_size_limit, unsigned flags) {
  CUfunction function = nullptr;
  if (min_grid_size == nullptr || block_size == nullptr || (flags & ~kKnownOccupancyFlags) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(resolve_function(handle, function));
  int limit = static_cast<int>(function->kernel->info().max_threads);
  if (block_size_limit > 0) limit = std::min(limit, block_size_limit);
  int best_threads = 0;
  for (int size = (limit + 31) / 32 * 32; size > 0; size -= 32) {
    const int threads = std::min(size, limit);
    const std::size_t shared = shared_of_block != nullptr ? shared_of_block(threads) : dynamic_shared_bytes;
    const int blocks = softgpu::blocks_per_sm(*function, static_cast<unsigned>(threads), shared);
    if (blocks * threads <= best_threads) continue;
    best_threads = blocks * threads;
    *block_size = threads;
    *min_grid_size = blocks * static_cast<int>(function->module->context->device().profile().sm_count);
  }
  return best_threads > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid_size, int* block_size, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block, size_t dynamic_shared_bytes,
                                          int block_size_limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid_size, block_size, function, shared_of_block,
                                                   dynamic_shared_bytes, block_size_limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks, int block_size) {
  CUfunction function = nullptr;
  if (bytes == nullptr || blocks <= 0 || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_function(handle, function));
  const std::size_t per_sm = function->module->context->device().profile().shared_per_sm_kib << 10;
  const std::size_t fixed = function->kernel->info().static_shared_bytes;
  const std::size_t share =
      std::min(per_sm / static_cast<unsigned>(blocks), static_cast<std::size_t>(shared_limit(function)));
  *bytes = share > fixed ? share - fixed : 0;
  return CUDA_SUCCESS;
}
