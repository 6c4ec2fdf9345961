#include "softgpu/driver/code/module.h"

#include <algorithm>
#include <cstdlib>

#include "softgpu/device/time/busy_meter.h"
#include "softgpu/driver/code/library.h"
#include "softgpu/driver/log.h"
#include "softgpu/mutex.h"
#include "softgpu/ptx/text/header.h"

namespace softgpu {
namespace {

constexpr int kDefaultDynamicShared = 48 * 1024;
constexpr unsigned kMostRegisters = 255;

// What the compiler's information log says of a module.
std::string describe(const ptx::Module& module) {
  std::string text;
  for (const std::string& name : module.kernel_names()) {
    const ptx::KernelInfo& info = module.kernel(name)->info();
    text += "info    : '" + name + "' uses " + std::to_string(info.registers) + " registers, " +
            std::to_string(info.static_shared_bytes) + " bytes of shared, " + std::to_string(info.local_bytes) +
            " of local and " + std::to_string(info.constant_bytes) + " of constant memory\n";
  }
  return text;
}

}  // namespace

CUresult result_of(ptx::LoadError::Kind kind) {
  return kind == ptx::LoadError::Kind::kOutOfMemory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
}

CUresult LoadedModule::load(std::string_view text, unsigned register_limit, std::string& error) {
  PrintBuffer& prints = memory_.context()->prints();
  ptx::LoadResult result = ptx::load_module(text, memory_, [&prints](std::string_view line) { prints.append(line); });
  if (result.module == nullptr) {
    error = "ptx line " + std::to_string(result.error.line) + ": " + result.error.message;
    return result_of(result.error.kind);
  }
  module_ = std::move(result.module);
  register_limit_ = register_limit;
  ptx_version_ = ptx::read_header(text).value_or(ptx::Header{}).architecture;
  return CUDA_SUCCESS;
}

ptx::ModuleMemory::Managed LoadedModule::Memory::allocate_managed(std::string_view name, std::size_t bytes) {
  const auto found = managed_.find(name);
  if (found != managed_.end() && found->second->bytes() == bytes) return {found->second->address(), false};
  auto made = ManagedVariable::make(bytes);
  if (made == nullptr) return {};
  const std::uint64_t address = made->address();
  managed_.insert_or_assign(std::string(name), std::move(made));
  return {address, true};
}

CUresult load_module(CUcontext context, const CodeImage& image, const JitOptions& jit, CUmodule& module,
                     const ManagedVariables& shared) {
  const std::uint64_t begin = monotonic_ns();
  context->prints().flush();
  auto code = std::make_shared<LoadedModule>(context, shared);
  std::string_view text;
  std::string error;
  CUresult result = choose_text(image, architecture_of(context->device()), text, error);
  if (result == CUDA_SUCCESS) result = code->load(text, jit.max_registers(), error);
  jit.report(error, result == CUDA_SUCCESS && jit.verbose() ? describe(code->code()) : "", begin);
  if (result != CUDA_SUCCESS) {
    log_line("module refused: " + error);
    return result;
  }
  module = Modules::take();
  module->context = context;
  module->library = nullptr;
  module->code = std::move(code);
  context->part<ContextModules>().add(module);
  return CUDA_SUCCESS;
}

void ContextModules::add(CUmodule module) {
  const LockGuard guard(mutex_);
  modules_.insert(module);
}

void ContextModules::remove(CUmodule module) {
  const LockGuard guard(mutex_);
  modules_.erase(module);
}

void ContextModules::close() {
  std::set<CUmodule> modules;
  {
    const LockGuard guard(mutex_);
    modules.swap(modules_);
  }
  for (CUmodule module : modules) module->unload();
}

bool eager_loading() {
  static const bool eager = [] {
    const char* mode = std::getenv("CUDA_MODULE_LOADING");
    return mode != nullptr && std::string_view(mode) == "EAGER";
  }();
  return eager;
}

int architecture_of(const Device& device) {
  return device.profile().compute_major * 10 + device.profile().compute_minor;
}

CUresult resolve_function(CUfunction handle, CUfunction& function) {
  function = handle;
  if (!Functions::valid(handle)) {
    const auto kernel = reinterpret_cast<CUkernel>(handle);
    if (!Kernels::valid(kernel)) return CUDA_ERROR_INVALID_HANDLE;
    SOFTGPU_TRY(function_of(kernel, function));
  }
  function->kernel->make_ready();
  return CUDA_SUCCESS;
}

}  // namespace softgpu

unsigned CUfunc_st::registers() const {
  const unsigned wanted = std::clamp(kernel->info().registers, 1U, softgpu::kMostRegisters);
  return code->register_limit() == 0 ? wanted : std::min(wanted, std::max(code->register_limit(), 1U));
}

CUfunc_st* CUmod_st::function(std::string_view name) {
  const softgpu::LockGuard guard(mutex);
  if (const auto found = functions.find(name); found != functions.end()) return found->second;
  const softgpu::ptx::Kernel* kernel = code->code().kernel(name);
  if (kernel == nullptr) return nullptr;
  CUfunc_st* made = softgpu::Functions::take();
  made->module = this;
  made->code = code;
  made->kernel = kernel;
  if (softgpu::eager_loading()) kernel->make_ready();
  made->max_dynamic_shared =
      std::max(0, softgpu::kDefaultDynamicShared - static_cast<int>(kernel->info().static_shared_bytes));
  made->carveout = -1;
  for (auto* setting : {&made->cluster_width, &made->cluster_height, &made->cluster_depth, &made->non_portable_cluster,
                        &made->cluster_policy}) {
    *setting = 0;
  }
  functions.emplace(name, made);
  return made;
}

void CUmod_st::unload() {
  {
    const softgpu::LockGuard guard(mutex);
    for (const auto& [name, function] : functions) {
      function->code.reset();
      softgpu::Functions::give_back(function);
    }
    functions.clear();
    code.reset();
  }
  softgpu::Modules::give_back(this);
}
