// Modules, functions, libraries: what their handles point to.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "softgpu/driver/context.h"
#include "softgpu/driver/handle.h"
#include "softgpu/ptx/machine.h"

namespace softgpu {

// A module's code and memory. Launches keep it until they have run, so a module may be unloaded behind them.
class LoadedModule {
 public:
  explicit LoadedModule(CUcontext context) : memory_(context) {}
  // The text of the error, and the result the driver reports for it.
  CUresult load(std::string_view text, std::string& error);
  const ptx::Module& code() const { return *module_; }

 private:
  class Memory final : public ptx::ModuleMemory {
   public:
    explicit Memory(CUcontext context) : context_(context) {}
    std::uint64_t allocate(std::size_t bytes) override { return context_->heap().allocate(bytes); }
    void release(std::uint64_t address) override { context_->heap().release(address); }
    CUcontext context() const { return context_; }

   private:
    CUcontext context_;
  };

  Memory memory_;
  std::unique_ptr<ptx::Module> module_;  // uses memory_
};

// Options of cuModuleLoadDataEx: where errors are written.
struct JitOptions {
  unsigned count = 0;
  CUjit_option* options = nullptr;
  void** values = nullptr;
  void report(const std::string& error) const;
};

// The PTX text of an image. INVALID_IMAGE for what is no text, NO_BINARY_FOR_GPU for machine code.
CUresult ptx_of_image(const void* image, std::string_view& text);
CUresult load_module(CUcontext context, std::string_view text, const JitOptions& jit, CUmodule& module);
CUresult read_image(const char* path, std::string& image);

}  // namespace softgpu

// A kernel of a module in one context; also what CUkernel points to, which names a kernel in any context.
struct CUfunc_st {
  static constexpr std::uint32_t kMagic = 0x66756E63;  // "func"
  std::atomic<std::uint32_t> magic{0};
  CUmod_st* module = nullptr;
  CUlib_st* library = nullptr;  // set for kernels of a library
  std::shared_ptr<const softgpu::LoadedModule> code;
  const softgpu::ptx::Kernel* kernel = nullptr;
  std::atomic<int> max_dynamic_shared{0};
  std::atomic<int> carveout{-1};
};

struct CUmod_st {
  static constexpr std::uint32_t kMagic = 0x6D6F6475;  // "modu"
  std::atomic<std::uint32_t> magic{0};
  CUcontext context = nullptr;
  CUlib_st* library = nullptr;
  std::shared_ptr<const softgpu::LoadedModule> code;
  std::mutex mutex;
  std::map<std::string, CUfunc_st*, std::less<>> functions;  // guarded by mutex

  // The function, or null when the module has no kernel of that name.
  CUfunc_st* function(std::string_view name);
  // Ends all handles of the module. REQUIRES: no launch of it is being submitted.
  void unload();
};

struct CUlib_st {
  static constexpr std::uint32_t kMagic = 0x6C696272;  // "libr"
  std::atomic<std::uint32_t> magic{0};
  std::string text;
  std::mutex mutex;
  std::map<std::uint64_t, CUmod_st*> modules;  // by context id; guarded by mutex

  // The library's module in `context`, loaded on first use.
  CUresult module_in(CUcontext context, const softgpu::JitOptions& jit, CUmodule& module);
};

namespace softgpu {

using Functions = HandlePool<CUfunc_st>;
using Modules = HandlePool<CUmod_st>;
using Libraries = HandlePool<CUlib_st>;

// A function, or a kernel of a library taken for the current context (CUDA allows the cast).
CUresult resolve_function(CUfunction handle, CUfunction& function);

}  // namespace softgpu
