// Libraries.
#include <algorithm>
#include <string>

#include "softgpu/device/time/busy_meter.h"
#include "softgpu/driver/code/library.h"
#include "softgpu/driver/log.h"

using softgpu::CodeImage;
using softgpu::healthy_context;
using softgpu::JitOptions;
using softgpu::Libraries;

namespace {

CUresult check_options(CUlibraryOption* options, unsigned count) {
  if (count != 0 && options == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto is_known = [](CUlibraryOption option) { return option >= 0 && option < CU_LIBRARY_NUM_OPTIONS; };
  return std::all_of(options, options + count, is_known) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult load(CUlibrary* library, CodeImage image, const JitOptions& jit) {
  CUlib_st* made = Libraries::take();
  made->image = std::move(image);
  if (const CUresult result = made->load(jit); result != CUDA_SUCCESS) {
    made->unload();
    Libraries::give_back(made);
    return result;
  }
  *library = made;
  return CUDA_SUCCESS;
}

CUresult refused(CUresult result, const std::string& error, const JitOptions& jit) {
  jit.report(error, "", softgpu::monotonic_ns());
  softgpu::log_line("library refused: " + error);
  return result;
}

CUresult check_library(CUlibrary library) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return Libraries::valid(library) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult module_of(CUlibrary library, CUmodule& module) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(check_library(library));
  SOFTGPU_TRY(healthy_context(context));
  return library->module_in(context, {}, module);
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* jit_options, void** jit_values,
                           unsigned jit_count, CUlibraryOption* options, void**, unsigned count) {
  CodeImage code;
  std::string error;
  const JitOptions jit(jit_count, jit_options, jit_values);
  if (library == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  SOFTGPU_TRY(check_options(options, count));
  SOFTGPU_TRY(jit.check());
  const CUresult result = softgpu::read_library_image(image, code, error);
  return result == CUDA_SUCCESS ? load(library, std::move(code), jit) : refused(result, error, jit);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options, void** jit_values,
                               unsigned jit_count, CUlibraryOption* options, void**, unsigned count) {
  CodeImage code;
  std::string error;
  std::vector<std::byte> bytes;
  const JitOptions jit(jit_count, jit_options, jit_values);
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  SOFTGPU_TRY(check_options(options, count));
  SOFTGPU_TRY(jit.check());
  SOFTGPU_TRY(softgpu::read_file(path, bytes));
  const CUresult result = softgpu::read_image(std::span<const std::byte>(bytes), code, error);
  return result == CUDA_SUCCESS ? load(library, std::move(code), jit) : refused(result, error, jit);
}

CUresult cuLibraryUnload(CUlibrary library) {
  SOFTGPU_TRY(check_library(library));
  library->unload();
  Libraries::give_back(library);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return module_of(library, *module);
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_library(library));
  const auto found = library->kernels.find(std::string_view(name));
  if (found == library->kernels.end()) return CUDA_ERROR_NOT_FOUND;
  *kernel = found->second;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_library(library));
  *count = static_cast<unsigned>(library->kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_library(library));
  for (const auto& [name, kernel] : library->kernels) {
    if (count-- == 0) break;
    *kernels++ = kernel;
  }
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  CUmodule module = nullptr;
  SOFTGPU_TRY(module_of(library, module));
  return cuModuleGetGlobal_v2(address, bytes, module, name);
}

CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_library(library));
  const auto& managed = library->managed;
  if (std::find(managed.begin(), managed.end(), name) == managed.end()) return CUDA_ERROR_NOT_FOUND;
  return cuLibraryGetGlobal(address, bytes, library, name);
}

// Functions that host and device both call by one pointer exist only where both execute the same code.
CUresult cuLibraryGetUnifiedFunction(void** function, CUlibrary library, const char* symbol) {
  if (function == nullptr || symbol == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_library(library));
  return CUDA_ERROR_NOT_FOUND;
}
