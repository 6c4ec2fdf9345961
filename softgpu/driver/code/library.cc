#include "softgpu/driver/code/library.h"

#include <cstdlib>

#include "softgpu/device/time/busy_meter.h"
#include "softgpu/driver/log.h"
#include "softgpu/mutex.h"
#include "softgpu/ptx/text/header.h"

namespace softgpu {
namespace {

// For a library that no context has asked for yet: its kernels can be named and described, not run.
class HostMemory final : public ptx::ModuleMemory {
 public:
  std::uint64_t allocate(std::size_t bytes) override {
    return reinterpret_cast<std::uint64_t>(
        std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) & ~(kAlignment - 1)));
  }
  void release(std::uint64_t address) override { std::free(reinterpret_cast<void*>(address)); }
  Managed allocate_managed(std::string_view, std::size_t bytes) override {
    managed_.emplace_back(new std::byte[bytes]());
    return {reinterpret_cast<std::uint64_t>(managed_.back().get()), true};
  }
  ptx::DeviceHeap* kernel_heap() override { return &heap_; }

 private:
  static constexpr std::size_t kAlignment = 256;  // what a device gives
  std::vector<std::unique_ptr<std::byte[]>> managed_;
  ptx::DeviceHeap heap_{0, 0};
};

}  // namespace

CUresult function_of(CUkernel kernel, CUfunction& function) {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  if (!Kernels::valid(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  SOFTGPU_TRY(healthy_context(context));
  SOFTGPU_TRY(kernel->library->module_in(context, {}, module));
  const bool is_new = [&] {
    const LockGuard guard(module->mutex);
    return !module->functions.contains(kernel->info.name);
  }();
  function = module->function(kernel->info.name);
  if (!is_new) return CUDA_SUCCESS;
  const LockGuard guard(kernel->library->mutex);
  for (const auto& [setting, value] : kernel->settings) {
    if (setting.first == context->owner().ordinal) cuFuncSetAttribute(function, setting.second, value);
  }
  return CUDA_SUCCESS;
}

}  // namespace softgpu

using softgpu::ptx::Module;

void CUlib_st::add_kernels(const Module& code) {
  for (const std::string& name : code.kernel_names()) {
    CUkern_st* kernel = softgpu::Kernels::take();
    kernel->library = this;
    kernel->info = code.kernel(name)->info();
    kernels.emplace(name, kernel);
    const softgpu::LockGuard guard(kernel->library->mutex);
    kernel->settings.clear();
  }
}

CUresult CUlib_st::load(const softgpu::JitOptions& jit) {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  if (softgpu::healthy_context(context) == CUDA_SUCCESS) {
    SOFTGPU_TRY(module_in(context, jit, module));
    add_kernels(module->code->code());
  } else {
    SOFTGPU_TRY(load_nowhere(jit));
  }
  for (const auto& candidate : image.texts) {
    for (const std::string_view name : softgpu::ptx::managed_variables(candidate.text)) managed.emplace_back(name);
  }
  return CUDA_SUCCESS;
}

CUresult CUlib_st::load_nowhere(const softgpu::JitOptions& jit) {
  const std::uint64_t begin = softgpu::monotonic_ns();
  const auto& device = *softgpu::Process::get()->devices().front()->device;
  std::string_view text;
  std::string error;
  CUresult result = choose_text(image, softgpu::architecture_of(device), text, error);
  if (result == CUDA_SUCCESS) {
    softgpu::HostMemory memory;
    const auto loaded = softgpu::ptx::load_module(text, memory, [](std::string_view) {});
    if (loaded.module != nullptr) {
      add_kernels(*loaded.module);
    } else {
      error = "ptx line " + std::to_string(loaded.error.line) + ": " + loaded.error.message;
      result = softgpu::result_of(loaded.error.kind);
    }
  }
  jit.report(error, "", begin);
  if (result != CUDA_SUCCESS) softgpu::log_line("library refused: " + error);
  return result;
}

CUresult CUlib_st::module_in(CUcontext context, const softgpu::JitOptions& jit, CUmodule& module) {
  const softgpu::LockGuard guard(mutex);
  if (const auto found = modules.find(context->id()); found != modules.end()) {
    module = found->second;
    return CUDA_SUCCESS;
  }
  SOFTGPU_TRY(softgpu::load_module(context, image, jit, module, managed_memory));
  managed_memory = module->code->managed();
  module->library = this;
  modules[context->id()] = module;
  return CUDA_SUCCESS;
}

void CUlib_st::unload() {
  std::map<std::uint64_t, CUmod_st*> loaded;
  softgpu::ManagedVariables variables;  // go behind the modules, and without the mutex
  {
    const softgpu::LockGuard guard(mutex);
    loaded.swap(modules);
    variables.swap(managed_memory);
  }
  for (const auto& [context_id, module] : loaded) {
    if (!softgpu::Modules::valid(module) || module->context->id() != context_id) continue;  // went with its context
    module->context->synchronise();
    module->context->part<softgpu::ContextModules>().remove(module);
    module->unload();
  }
  for (const auto& [name, kernel] : kernels) softgpu::Kernels::give_back(kernel);
  kernels.clear();
  managed.clear();
  image = {};
}
