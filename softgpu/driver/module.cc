#include "softgpu/driver/module.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "softgpu/driver/log.h"

namespace softgpu {
namespace {

constexpr std::uint32_t kFatbin = 0xBA55ED50;
constexpr std::uint32_t kFatbinWrapper = 0x466243B1;
constexpr char kElf[] =
    "\x7f"
    "ELF";
constexpr int kDefaultDynamicShared = 48 * 1024;

CUresult result_of(ptx::LoadError::Kind kind) {
  return kind == ptx::LoadError::Kind::kOutOfMemory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
}

}  // namespace

CUresult LoadedModule::load(std::string_view text, std::string& error) {
  PrintBuffer& prints = memory_.context()->prints();
  ptx::LoadResult result = ptx::load_module(text, memory_, [&prints](std::string_view line) { prints.append(line); });
  if (result.module == nullptr) {
    error = "ptx line " + std::to_string(result.error.line) + ": " + result.error.message;
    return result_of(result.error.kind);
  }
  module_ = std::move(result.module);
  return CUDA_SUCCESS;
}

void JitOptions::report(const std::string& error) const {
  if (options == nullptr || values == nullptr) return;
  const auto find = [&](CUjit_option wanted) {
    return static_cast<std::size_t>(std::find(options, options + count, wanted) - options);
  };
  const auto write = [&](CUjit_option buffer_option, CUjit_option size_option, const std::string& text) {
    const std::size_t buffer = find(buffer_option);
    const std::size_t size = find(size_option);
    if (buffer == count || size == count || values[buffer] == nullptr) return;
    const std::size_t capacity = reinterpret_cast<std::uintptr_t>(values[size]) & UINT32_MAX;
    if (capacity == 0) return;
    const std::size_t length = std::min(text.size(), capacity - 1);
    std::memcpy(values[buffer], text.data(), length);
    static_cast<char*>(values[buffer])[length] = '\0';
    values[size] = reinterpret_cast<void*>(text.empty() ? 0 : length + 1);
  };
  write(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error);
  write(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, "");
}

CUresult ptx_of_image(const void* image, std::string_view& text) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint32_t word = 0;
  std::memcpy(&word, image, std::min<std::size_t>(sizeof word, ::strnlen(static_cast<const char*>(image), 4)));
  if (word == kFatbin || word == kFatbinWrapper) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (::strncmp(static_cast<const char*>(image), kElf, 4) == 0) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  text = static_cast<const char*>(image);
  return text.find(".version") == std::string_view::npos ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

CUresult load_module(CUcontext context, std::string_view text, const JitOptions& jit, CUmodule& module) {
  auto code = std::make_shared<LoadedModule>(context);
  std::string error;
  const CUresult result = code->load(text, error);
  jit.report(error);
  if (result != CUDA_SUCCESS) {
    log_line("module refused: " + error);
    return result;
  }
  module = Modules::take();
  module->context = context;
  module->library = nullptr;
  module->code = std::move(code);
  context->add_module(module);
  return CUDA_SUCCESS;
}

CUresult read_image(const char* path, std::string& image) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  image.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  return CUDA_SUCCESS;
}

CUresult resolve_function(CUfunction handle, CUfunction& function) {
  if (!Functions::valid(handle)) return CUDA_ERROR_INVALID_HANDLE;
  function = handle;
  if (handle->library == nullptr) return CUDA_SUCCESS;
  CUcontext context = nullptr;
  SOFTGPU_TRY(healthy_context(context));
  if (handle->module->context == context) return CUDA_SUCCESS;
  CUmodule module = nullptr;
  SOFTGPU_TRY(handle->library->module_in(context, {}, module));
  function = module->function(handle->kernel->info().name);
  return CUDA_SUCCESS;
}

}  // namespace softgpu

CUfunc_st* CUmod_st::function(std::string_view name) {
  const std::lock_guard guard(mutex);
  if (const auto found = functions.find(name); found != functions.end()) return found->second;
  const softgpu::ptx::Kernel* kernel = code->code().kernel(name);
  if (kernel == nullptr) return nullptr;
  CUfunc_st* made = softgpu::Functions::take();
  made->module = this;
  made->library = library;
  made->code = code;
  made->kernel = kernel;
  made->max_dynamic_shared =
      std::max(0, softgpu::kDefaultDynamicShared - static_cast<int>(kernel->info().static_shared_bytes));
  made->carveout = -1;
  functions.emplace(name, made);
  return made;
}

void CUmod_st::unload() {
  {
    const std::lock_guard guard(mutex);
    for (const auto& [name, function] : functions) {
      function->code.reset();
      softgpu::Functions::give_back(function);
    }
    functions.clear();
    code.reset();
  }
  softgpu::Modules::give_back(this);
}

CUresult CUlib_st::module_in(CUcontext context, const softgpu::JitOptions& jit, CUmodule& module) {
  const std::lock_guard guard(mutex);
  if (const auto found = modules.find(context->id()); found != modules.end()) {
    module = found->second;
    return CUDA_SUCCESS;
  }
  SOFTGPU_TRY(softgpu::load_module(context, text, jit, module));
  module->library = this;
  modules[context->id()] = module;
  return CUDA_SUCCESS;
}
