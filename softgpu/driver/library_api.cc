// Libraries: code that belongs to no context and is loaded into each one that uses it.
#include <algorithm>
#include <string>

#include "softgpu/driver/module.h"

using softgpu::Functions;
using softgpu::healthy_context;
using softgpu::JitOptions;
using softgpu::Libraries;

namespace {

CUresult module_of(CUlibrary library, CUmodule& module) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(healthy_context(context));
  if (!Libraries::valid(library)) return CUDA_ERROR_INVALID_HANDLE;
  return library->module_in(context, {}, module);
}

CUfunction function_of(CUkernel kernel) {
  return reinterpret_cast<CUfunction>(kernel);
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* jit_options, void** jit_values,
                           unsigned jit_count, CUlibraryOption*, void**, unsigned) {
  std::string_view text;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  SOFTGPU_TRY(softgpu::ptx_of_image(image, text));
  CUlib_st* made = Libraries::take();
  made->text = text;
  // With a context at hand the code is loaded at once, so that its errors are reported here.
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  if (healthy_context(context) == CUDA_SUCCESS) {
    if (const CUresult result = made->module_in(context, {jit_count, jit_options, jit_values}, module);
        result != CUDA_SUCCESS) {
      Libraries::give_back(made);
      return result;
    }
  }
  *library = made;
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options, void** jit_values,
                               unsigned jit_count, CUlibraryOption* options, void** values, unsigned count) {
  std::string image;
  SOFTGPU_TRY(softgpu::read_image(path, image));
  return cuLibraryLoadData(library, image.c_str(), jit_options, jit_values, jit_count, options, values, count);
}

CUresult cuLibraryUnload(CUlibrary library) {
  if (!Libraries::valid(library)) return CUDA_ERROR_INVALID_HANDLE;
  std::map<std::uint64_t, CUmod_st*> modules;
  {
    const std::lock_guard guard(library->mutex);
    modules.swap(library->modules);
    library->text.clear();
  }
  for (const auto& [context_id, module] : modules) {
    if (!softgpu::Modules::valid(module) || module->context->id() != context_id) continue;  // went with its context
    module->context->synchronise();
    module->context->remove_module(module);
    module->unload();
  }
  Libraries::give_back(library);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return module_of(library, *module);
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  CUmodule module = nullptr;
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(module_of(library, module));
  *kernel = reinterpret_cast<CUkernel>(module->function(name));
  return *kernel != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  CUmodule module = nullptr;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(module_of(library, module));
  return cuModuleGetFunctionCount(count, module);
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  CUmodule module = nullptr;
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(module_of(library, module));
  return cuModuleEnumerateFunctions(reinterpret_cast<CUfunction*>(kernels), count, module);
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  CUmodule module = nullptr;
  SOFTGPU_TRY(module_of(library, module));
  return cuModuleGetGlobal_v2(address, bytes, module, name);
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return softgpu::resolve_function(function_of(kernel), *function);
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Functions::valid(function_of(kernel))) return CUDA_ERROR_INVALID_HANDLE;
  *library = function_of(kernel)->library;
  return *library != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return cuFuncGetName(name, function_of(kernel));
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  return cuFuncGetAttribute(value, attribute, function_of(kernel));
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  return cuFuncSetAttribute(function_of(kernel), attribute, value);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return cuFuncGetParamInfo(function_of(kernel), index, offset, size);
}
