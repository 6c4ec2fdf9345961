// What compilers emit into host programs, and the stack behind `kernel<<<grid, block, shared, stream>>>(..)`: the
// configuration is pushed, the stub of the kernel pops it and calls cudaLaunchKernel.
#include <vector>

#include "softgpu/cudart/api.h"
#include "softgpu/cudart/registry.h"
#include "softgpu/thread_owned.h"

using softgpu::cudart::FatBinary;
using softgpu::cudart::Registry;
using softgpu::cudart::report;

namespace {

struct CallConfiguration {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

std::vector<CallConfiguration>& configurations() {
  return softgpu::thread_owned<std::vector<CallConfiguration>>();
}

FatBinary* binary_of(void** handle) {
  return reinterpret_cast<FatBinary*>(handle);
}

}  // namespace

void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(Registry::get().add_binary(wrapper));
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  Registry::get().remove(binary_of(handle));
}

void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* device_name, int, void*, void*,
                            void*, void*, int*) {
  Registry::get().add_kernel(binary_of(handle), host_function, device_name);
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* device_name, int, size_t size, int, int) {
  Registry::get().add_variable(binary_of(handle), host_variable, device_name, size);
}

void __cudaRegisterManagedVar(void** handle, void** host_pointer, char*, const char* device_name, int, size_t size, int,
                              int) {
  Registry::get().add_managed(binary_of(handle), host_pointer, device_name, size);
}

char __cudaInitModule(void** handle) {
  return softgpu::cudart::in_context([&](const softgpu::cudart::Driver& driver) {
           return Registry::get().load_managed(driver, binary_of(handle));
         }) == cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  if (configurations().empty()) return report(cudaErrorMissingConfiguration);
  const CallConfiguration& last = configurations().back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  configurations().pop_back();
  return cudaSuccess;
}
