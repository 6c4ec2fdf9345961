// Functions: their attributes.
#include "softgpu/driver/code/module.h"
#include "softgpu/driver/code/occupancy.h"

using softgpu::Functions;
using softgpu::resolve_function;

namespace {

constexpr int kLargestCluster = 16;  // blocks; 8 without NON_PORTABLE_CLUSTER_SIZE_ALLOWED
constexpr int kClusterPolicies = 2;

CUresult store(std::atomic<int>& setting, int value, int least, int most) {
  if (value < least || value > most) return CUDA_ERROR_INVALID_VALUE;
  setting = value;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  CUfunction function = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_function(handle, function));
  const softgpu::ptx::KernelInfo& info = function->kernel->info();
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = static_cast<int>(info.max_threads); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(info.static_shared_bytes); break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = static_cast<int>(info.constant_bytes); break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(info.local_bytes); break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = static_cast<int>(function->registers()); break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = function->code->ptx_version(); break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = architecture_of(function->module->context->device()); break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = 0; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = function->max_dynamic_shared; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = function->carveout; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = function->cluster_width; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = function->cluster_height; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = function->cluster_depth; break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *value = function->non_portable_cluster; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = function->cluster_policy; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  CUfunction function = nullptr;
  SOFTGPU_TRY(resolve_function(handle, function));
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const auto fixed = static_cast<int>(function->kernel->info().static_shared_bytes);
      return store(function->max_dynamic_shared, value, 0, softgpu::shared_limit(*function) - fixed);
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return store(function->carveout, value, -1, 100);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: return store(function->cluster_width, value, 0, kLargestCluster);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: return store(function->cluster_height, value, 0, kLargestCluster);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return store(function->cluster_depth, value, 0, kLargestCluster);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: return store(function->non_portable_cluster, value, 0, 1);
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return store(function->cluster_policy, value, 0, kClusterPolicies);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  CUfunction function = nullptr;
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  return resolve_function(handle, function);
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
  CUfunction function = nullptr;
  if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE || config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return resolve_function(handle, function);
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
  CUfunction function = nullptr;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_function(handle, function));
  *module = function->module;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction handle) {
  CUfunction function = nullptr;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_function(handle, function));
  *name = function->kernel->info().name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  CUfunction function = nullptr;
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_function(handle, function));
  const auto& parameters = function->kernel->info().parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].offset;
  if (size != nullptr) *size = parameters[index].size;
  return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Functions::valid(handle)) return CUDA_ERROR_INVALID_HANDLE;
  *state = handle->kernel->is_ready() ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction handle) {
  CUfunction function = nullptr;
  return resolve_function(handle, function);
}
