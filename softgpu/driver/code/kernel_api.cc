// Kernels of libraries: what can be asked and set without a context.
#include "softgpu/driver/code/library.h"
#include "softgpu/mutex.h"

using softgpu::Kernels;

namespace {

CUresult check_kernel(CUkernel kernel) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return Kernels::valid(kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Runs `use` with the kernel's function on the device, in the primary context unless one of the device is current.
template <typename Use>
CUresult on_device(CUkernel kernel, CUdevice ordinal, const Use& use) {
  softgpu::DriverDevice* device = nullptr;
  CUcontext context = nullptr;
  CUfunction function = nullptr;
  SOFTGPU_TRY(check_kernel(kernel));
  SOFTGPU_TRY(softgpu::get_device(ordinal, device));
  if (softgpu::healthy_context(context) == CUDA_SUCCESS && &context->owner() == device) {
    SOFTGPU_TRY(softgpu::function_of(kernel, function));
    return use(function);
  }
  SOFTGPU_TRY(cuDevicePrimaryCtxRetain(&context, ordinal));
  CUresult result = cuCtxPushCurrent_v2(context);
  if (result == CUDA_SUCCESS) {
    result = softgpu::function_of(kernel, function);
    if (result == CUDA_SUCCESS) result = use(function);
    cuCtxPopCurrent_v2(&context);
  }
  cuDevicePrimaryCtxRelease_v2(ordinal);
  return result;
}

// Functions of the kernel that exist on the device already.
std::vector<CUfunction> functions_on(CUkernel kernel, CUdevice ordinal) SOFTGPU_REQUIRES(kernel->library->mutex) {
  std::vector<CUfunction> functions;
  for (const auto& [context_id, module] : kernel->library->modules) {
    if (!softgpu::Modules::valid(module) || module->context->id() != context_id) continue;
    if (module->context->owner().ordinal != ordinal) continue;
    const softgpu::LockGuard guard(module->mutex);
    if (const auto found = module->functions.find(kernel->info.name); found != module->functions.end()) {
      functions.push_back(found->second);
    }
  }
  return functions;
}

}  // namespace

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_kernel(kernel));
  return softgpu::function_of(kernel, *function);
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_kernel(kernel));
  *library = kernel->library;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_kernel(kernel));
  *name = kernel->info.name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_kernel(kernel));
  const auto& parameters = kernel->info.parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].offset;
  if (size != nullptr) *size = parameters[index].size;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return on_device(kernel, device, [&](CUfunction function) { return cuFuncGetAttribute(value, attribute, function); });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  SOFTGPU_TRY(
      on_device(kernel, device, [&](CUfunction function) { return cuFuncSetAttribute(function, attribute, value); }));
  const softgpu::LockGuard guard(kernel->library->mutex);
  kernel->settings[{device, attribute}] = value;
  for (const CUfunction function : functions_on(kernel, device)) cuFuncSetAttribute(function, attribute, value);
  return CUDA_SUCCESS;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice ordinal) {
  softgpu::DriverDevice* device = nullptr;
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_kernel(kernel));
  return softgpu::get_device(ordinal, device);
}
