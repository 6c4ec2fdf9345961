// Modules.
#include <algorithm>
#include <string>

#include "softgpu/device/time/busy_meter.h"
#include "softgpu/driver/code/module.h"
#include "softgpu/driver/log.h"
#include "softgpu/driver/stream/stream_handle.h"

using softgpu::CodeImage;
using softgpu::healthy_context;
using softgpu::JitOptions;
using softgpu::Modules;
using softgpu::uncaptured_context;

namespace {

CUresult refused(CUresult result, const std::string& error, const JitOptions& jit) {
  jit.report(error, "", softgpu::monotonic_ns());
  softgpu::log_line("module refused: " + error);
  return result;
}

// The module of a call that looks for something in it by name.
CUresult check_lookup(CUmodule module, const char* name) {
  CUcontext context = nullptr;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_context(context));
  return Modules::valid(module) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned option_count, CUjit_option* options,
                            void** values) {
  CUcontext context = nullptr;
  CodeImage code;
  std::string error;
  const JitOptions jit(option_count, options, values);
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(uncaptured_context(context));
  SOFTGPU_TRY(jit.check());
  if (const CUresult result = softgpu::read_image(image, code, error); result != CUDA_SUCCESS) {
    return refused(result, error, jit);
  }
  return softgpu::load_module(context, code, jit, *module);
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  CUcontext context = nullptr;
  CodeImage code;
  std::string error;
  std::vector<std::byte> bytes;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(uncaptured_context(context));
  SOFTGPU_TRY(softgpu::read_file(path, bytes));
  if (const CUresult result = softgpu::read_image(std::span<const std::byte>(bytes), code, error);
      result != CUDA_SUCCESS) {
    return refused(result, error, {});
  }
  return softgpu::load_module(context, code, {}, *module);
}

CUresult cuModuleUnload(CUmodule module) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(softgpu::current_context(context));
  if (!Modules::valid(module)) return CUDA_ERROR_INVALID_HANDLE;
  if (module->library != nullptr) return CUDA_ERROR_NOT_PERMITTED;
  module->context->synchronise();
  module->context->part<softgpu::ContextModules>().remove(module);
  module->unload();
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = softgpu::eager_loading() ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_lookup(module, name));
  CUfunc_st* found = module->function(name);
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  found->kernel->make_ready();
  *function = found;
  return CUDA_SUCCESS;
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
  for (std::size_t i = 0; i < std::min<std::size_t>(count, names.size()); ++i)
    functions[i] = module->function(names[i]);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  if (address == nullptr && bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_lookup(module, name));
  const softgpu::ptx::GlobalVariable* variable = module->code->code().global(name);
  if (variable == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = variable->address;
  if (bytes != nullptr) *bytes = variable->size;
  return CUDA_SUCCESS;
}

// Texture and surface references went with the language of CUDA 12; no module that loads here has any.
CUresult cuModuleGetTexRef(CUtexref* reference, CUmodule module, const char* name) {
  if (reference == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_lookup(module, name));
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetSurfRef(CUsurfref* reference, CUmodule module, const char* name) {
  if (reference == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_lookup(module, name));
  return CUDA_ERROR_NOT_FOUND;
}
