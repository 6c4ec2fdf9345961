// Modules.
#include <algorithm>
#include <string>

#include "softgpu/driver/module.h"

using softgpu::healthy_context;
using softgpu::Modules;

namespace {

// REQUIRES: `function` gets the kernel `name`; shared by modules and libraries.
CUresult find_function(CUmodule module, const char* name, CUfunction& function) {
  function = module->function(name);
  return function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned option_count, CUjit_option* options,
                            void** values) {
  CUcontext context = nullptr;
  std::string_view text;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_context(context));
  SOFTGPU_TRY(softgpu::ptx_of_image(image, text));
  return softgpu::load_module(context, text, {option_count, options, values}, *module);
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  std::string image;
  SOFTGPU_TRY(softgpu::read_image(path, image));
  return cuModuleLoadData(module, image.c_str());
}

CUresult cuModuleUnload(CUmodule module) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(softgpu::current_context(context));
  if (!Modules::valid(module)) return CUDA_ERROR_INVALID_HANDLE;
  if (module->library != nullptr) return CUDA_ERROR_NOT_PERMITTED;
  module->context->synchronise();
  module->context->remove_module(module);
  module->unload();
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  CUcontext context = nullptr;
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_context(context));
  if (!Modules::valid(module)) return CUDA_ERROR_INVALID_HANDLE;
  return find_function(module, name, *function);
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Modules::valid(module)) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(module->code->code().kernel_names().size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Modules::valid(module)) return CUDA_ERROR_INVALID_HANDLE;
  const auto names = module->code->code().kernel_names();
  for (std::size_t i = 0; i < std::min<std::size_t>(count, names.size()); ++i) {
    SOFTGPU_TRY(find_function(module, names[i].c_str(), functions[i]));
  }
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  CUcontext context = nullptr;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_context(context));
  if (!Modules::valid(module)) return CUDA_ERROR_INVALID_HANDLE;
  const softgpu::ptx::GlobalVariable* variable = module->code->code().global(name);
  if (variable == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = variable->address;
  if (bytes != nullptr) *bytes = variable->size;
  return CUDA_SUCCESS;
}
