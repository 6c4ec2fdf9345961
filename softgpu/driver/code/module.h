// Modules and functions: what their handles point to.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "softgpu/driver/code/image.h"
#include "softgpu/driver/code/jit_options.h"
#include "softgpu/driver/code/managed_variable.h"
#include "softgpu/driver/context/context.h"
#include "softgpu/driver/context/kernel_heap.h"
#include "softgpu/driver/handle.h"
#include "softgpu/mutex.h"
#include "softgpu/ptx/machine.h"

struct CUlib_st;

namespace softgpu {

// A module's code and memory. Launches keep it until they have run, so a module may be unloaded behind them.
class LoadedModule {
 public:
  // `shared`: managed variables that the module takes by name instead of making its own.
  LoadedModule(CUcontext context, ManagedVariables shared) : memory_(context, std::move(shared)) {}
  // The text of the error, and the result the driver reports for it. A limit of 0 registers is none.
  CUresult load(std::string_view text, unsigned register_limit, std::string& error);
  const ptx::Module& code() const { return *module_; }
  // The virtual architecture the text was compiled for: 75 when it says `.target sm_75`.
  int ptx_version() const { return ptx_version_; }
  unsigned register_limit() const { return register_limit_; }
  const ManagedVariables& managed() const { return memory_.managed(); }

 private:
  class Memory final : public ptx::ModuleMemory {
   public:
    Memory(CUcontext context, ManagedVariables shared) : context_(context), managed_(std::move(shared)) {}
    std::uint64_t allocate(std::size_t bytes) override { return context_->heap().allocate(bytes); }
    void release(std::uint64_t address) override { context_->heap().release(address); }
    Managed allocate_managed(std::string_view name, std::size_t bytes) override;
    ptx::DeviceHeap* kernel_heap() override { return context_->part<KernelHeap>().get(); }
    CUcontext context() const { return context_; }
    const ManagedVariables& managed() const { return managed_; }

   private:
    CUcontext context_;
    ManagedVariables managed_;
  };

  Memory memory_;
  int ptx_version_ = 0;
  unsigned register_limit_ = 0;
  std::unique_ptr<ptx::Module> module_;  // uses memory_
};

// The result the driver reports when the machine refuses a module.
CUresult result_of(ptx::LoadError::Kind kind);

// A new module of the image's best text for the context's device. The logs of `jit` are written in any case. The module
// takes the managed variables it finds in `shared`.
CUresult load_module(CUcontext context, const CodeImage& image, const JitOptions& jit, CUmodule& module,
                     const ManagedVariables& shared = {});

// Whether functions are loaded that a program has not asked for by name: CUDA_MODULE_LOADING=EAGER.
bool eager_loading();

// 75 for a device of compute capability 7.5.
int architecture_of(const Device& device);

}  // namespace softgpu

// A kernel of a module in one context.
struct CUfunc_st {
  static constexpr std::uint32_t kMagic = 0x66756E63;  // "func"
  std::atomic<std::uint32_t> magic{0};                 // first, as in CUkern_st: programs pass either as a CUfunction
  CUmod_st* module = nullptr;
  std::shared_ptr<const softgpu::LoadedModule> code;
  const softgpu::ptx::Kernel* kernel = nullptr;
  std::atomic<int> max_dynamic_shared{0};
  std::atomic<int> carveout{-1};
  std::atomic<int> cluster_width{0}, cluster_height{0}, cluster_depth{0};
  std::atomic<int> non_portable_cluster{0};
  std::atomic<int> cluster_policy{0};

  // 32-bit registers per thread.
  unsigned registers() const;
};

struct CUmod_st {
  static constexpr std::uint32_t kMagic = 0x6D6F6475;  // "modu"
  std::atomic<std::uint32_t> magic{0};
  CUcontext context = nullptr;
  CUlib_st* library = nullptr;  // whose module this is in its context, or null
  std::shared_ptr<const softgpu::LoadedModule> code;
  softgpu::Mutex mutex;
  std::map<std::string, CUfunc_st*, std::less<>> functions SOFTGPU_GUARDED_BY(mutex);

  // The function, or null when the module has no kernel of that name.
  CUfunc_st* function(std::string_view name);
  // Ends all handles of the module. REQUIRES: no launch of it is being submitted.
  void unload();
};

namespace softgpu {

using Functions = HandlePool<CUfunc_st>;
using Modules = HandlePool<CUmod_st>;

// The modules that are loaded into a context, and are unloaded with it. Thread-safe.
class ContextModules final : public ContextPart {
 public:
  static constexpr Kind kKind = Kind::kModules;
  explicit ContextModules(CUctx_st& /*context*/) {}

  void add(CUmodule module);
  void remove(CUmodule module);
  void close() override;

 private:
  Mutex mutex_;
  std::set<CUmodule> modules_ SOFTGPU_GUARDED_BY(mutex_);
};

// A function, or a kernel of a library taken for the current context (CUDA allows the cast). Its first use
// loads it.
CUresult resolve_function(CUfunction handle, CUfunction& function);

}  // namespace softgpu
