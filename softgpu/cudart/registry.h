// What compiled programs register before main: fat binaries, and which host symbols stand for which kernels and
// variables. Registering only takes notes; the code is loaded as a library of the driver with its first use, because a
// program that never launches should need no device.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "softgpu/cudart/runtime.h"
#include "softgpu/mutex.h"

namespace softgpu::cudart {

struct FatBinary {
  const void* image = nullptr;  // the container; whatever else was registered, the driver refuses
  CUlibrary library = nullptr;  // once loaded
};

class Registry {
 public:
  static Registry& get();

  // What a program registers: the wrapper of a container.
  FatBinary* add_binary(const void* wrapper);
  void add_kernel(FatBinary* binary, const void* host, const char* name);
  void add_variable(FatBinary* binary, const void* host, const char* name, std::size_t bytes);
  // `host` is the pointer variable that the program reads; it gets the address when the code is loaded.
  void add_managed(FatBinary* binary, void** host, const char* name, std::size_t bytes);
  // Loads a binary for its managed variables, which the host may read before any launch.
  cudaError_t load_managed(const Driver& driver, FatBinary* binary);
  // Forgets the binary and what was registered with it.
  void remove(FatBinary* binary);

  // The kernel of a host function: INVALID_DEVICE_FUNCTION when none was registered.
  cudaError_t kernel(const Driver& driver, const void* host, CUkernel& kernel);
  // The variable of a host symbol in the current context: INVALID_SYMBOL when none was registered.
  cudaError_t variable(const Driver& driver, const void* host, CUdeviceptr& address, std::size_t& bytes);

 private:
  struct Kernel {
    FatBinary* binary = nullptr;
    std::string name;
    CUkernel handle = nullptr;  // once looked up
  };
  struct Variable {
    FatBinary* binary = nullptr;
    std::string name;
    std::size_t bytes = 0;
    void** managed = nullptr;
  };

  cudaError_t load(const Driver& driver, FatBinary& binary) SOFTGPU_REQUIRES(mutex_);
  cudaError_t place_managed(const Driver& driver, FatBinary& binary) SOFTGPU_REQUIRES(mutex_);

  SharedMutex mutex_;
  std::map<FatBinary*, std::unique_ptr<FatBinary>> binaries_ SOFTGPU_GUARDED_BY(mutex_);
  std::unordered_map<const void*, Kernel> kernels_ SOFTGPU_GUARDED_BY(mutex_);
  std::unordered_map<const void*, Variable> variables_ SOFTGPU_GUARDED_BY(mutex_);
};

// The function of a host function in the thread's context.
cudaError_t function_of(const Driver& driver, const void* host, CUfunction& function);

}  // namespace softgpu::cudart
