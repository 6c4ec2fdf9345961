// Libraries: code that belongs to no context and is loaded into each one that uses it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "softgpu/driver/code/module.h"
#include "softgpu/mutex.h"

struct CUlib_st {
  static constexpr std::uint32_t kMagic = 0x6C696272;  // "libr"
  std::atomic<std::uint32_t> magic{0};
  softgpu::CodeImage image;
  std::map<std::string, CUkern_st*, std::less<>> kernels;  // constant once loaded
  std::vector<std::string> managed;                        // names of managed variables; constant once loaded
  softgpu::Mutex mutex;
  std::map<std::uint64_t, CUmod_st*> modules SOFTGPU_GUARDED_BY(mutex);  // by context id
  softgpu::ManagedVariables managed_memory SOFTGPU_GUARDED_BY(mutex);    // of all modules

  // Loads the image to learn its kernels: into the current context when there is a usable one, else nowhere.
  CUresult load(const softgpu::JitOptions& jit);
  // The library's module in `context`, loaded on first use.
  CUresult module_in(CUcontext context, const softgpu::JitOptions& jit, CUmodule& module);
  // Ends all handles of the library.
  void unload();

 private:
  void add_kernels(const softgpu::ptx::Module& code);
  CUresult load_nowhere(const softgpu::JitOptions& jit);
};

// A kernel of a library, in any context. May be passed wherever a CUfunction is taken.
struct CUkern_st {
  static constexpr std::uint32_t kMagic = 0x6B65726E;  // "kern"
  std::atomic<std::uint32_t> magic{0};                 // first, as in CUfunc_st
  CUlib_st* library = nullptr;
  softgpu::ptx::KernelInfo info;
  // What cuKernelSetAttribute set for a device; functions made there later take it.
  std::map<std::pair<CUdevice, CUfunction_attribute>, int> settings SOFTGPU_GUARDED_BY(library->mutex);
};

namespace softgpu {

using Libraries = HandlePool<CUlib_st>;
using Kernels = HandlePool<CUkern_st>;

// The kernel's function in the current context.
CUresult function_of(CUkernel kernel, CUfunction& function);

}  // namespace softgpu
