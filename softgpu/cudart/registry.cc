#include "softgpu/cudart/registry.h"

#include <cstring>

#include "softgpu/driver/code/fatbin_wrapper.h"
#include "softgpu/mutex.h"

namespace softgpu::cudart {
namespace {

// The container of a wrapper: the driver's calls that load modules take nothing else. Any other image as it is.
const void* unwrapped(const void* image) {
  FatbinWrapper wrapper;
  if (image == nullptr || std::memcmp(image, &wrapper.magic, sizeof wrapper.magic) != 0) return image;
  std::memcpy(&wrapper, image, sizeof wrapper);
  return wrapper.data;
}

}  // namespace

Registry& Registry::get() {
  static auto* const registry = new Registry;  // programs unregister after static destruction
  return *registry;
}

FatBinary* Registry::add_binary(const void* wrapper) {
  auto binary = std::make_unique<FatBinary>(FatBinary{unwrapped(wrapper), nullptr});
  const LockGuard guard(mutex_);
  FatBinary* const key = binary.get();
  binaries_.emplace(key, std::move(binary));
  return key;
}

void Registry::add_kernel(FatBinary* binary, const void* host, const char* name) {
  const LockGuard guard(mutex_);
  kernels_[host] = {binary, name, nullptr};
}

void Registry::add_variable(FatBinary* binary, const void* host, const char* name, std::size_t bytes) {
  const LockGuard guard(mutex_);
  variables_[host] = {binary, name, bytes, nullptr};
}

void Registry::add_managed(FatBinary* binary, void** host, const char* name, std::size_t bytes) {
  const LockGuard guard(mutex_);
  variables_[host] = {binary, name, bytes, host};
}

cudaError_t Registry::load(const Driver& driver, FatBinary& binary) {
  if (binary.library != nullptr) return cudaSuccess;
  const CUresult result =
      driver.cuLibraryLoadData(&binary.library, binary.image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (result != CUDA_SUCCESS) {
    binary.library = nullptr;
    return static_cast<cudaError_t>(result);
  }
  return place_managed(driver, binary);
}

cudaError_t Registry::place_managed(const Driver& driver, FatBinary& binary) {
  for (auto& [host, variable] : variables_) {
    if (variable.binary != &binary || variable.managed == nullptr) continue;
    CUdeviceptr address = 0;
    const CUresult result = driver.cuLibraryGetManaged(&address, nullptr, binary.library, variable.name.c_str());
    if (result != CUDA_SUCCESS) return static_cast<cudaError_t>(result);
    *variable.managed = reinterpret_cast<void*>(address);
  }
  return cudaSuccess;
}

cudaError_t Registry::load_managed(const Driver& driver, FatBinary* binary) {
  const LockGuard guard(mutex_);
  for (const auto& [host, variable] : variables_) {
    if (variable.binary == binary && variable.managed != nullptr) return load(driver, *binary);
  }
  return cudaSuccess;
}

void Registry::remove(FatBinary* binary) {
  CUlibrary library = nullptr;
  {
    const LockGuard guard(mutex_);
    const auto found = binaries_.find(binary);
    if (found == binaries_.end()) return;
    library = binary->library;
    std::erase_if(kernels_, [binary](const auto& entry) { return entry.second.binary == binary; });
    std::erase_if(variables_, [binary](const auto& entry) { return entry.second.binary == binary; });
    binaries_.erase(found);
  }
  if (library != nullptr) load_driver()->cuLibraryUnload(library);
}

cudaError_t Registry::kernel(const Driver& driver, const void* host, CUkernel& kernel) {
  {
    const ReadGuard guard(mutex_);
    const auto found = kernels_.find(host);
    if (found == kernels_.end()) return cudaErrorInvalidDeviceFunction;
    kernel = found->second.handle;
  }
  if (kernel != nullptr) return cudaSuccess;
  const LockGuard guard(mutex_);
  const auto found = kernels_.find(host);
  if (found == kernels_.end()) return cudaErrorInvalidDeviceFunction;
  Kernel& entry = found->second;
  if (const cudaError_t error = load(driver, *entry.binary); error != cudaSuccess) return error;
  const CUresult result = driver.cuLibraryGetKernel(&entry.handle, entry.binary->library, entry.name.c_str());
  kernel = entry.handle;
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t Registry::variable(const Driver& driver, const void* host, CUdeviceptr& address, std::size_t& bytes) {
  const LockGuard guard(mutex_);
  const auto found = variables_.find(host);
  if (found == variables_.end()) return cudaErrorInvalidSymbol;
  Variable& entry = found->second;
  if (const cudaError_t error = load(driver, *entry.binary); error != cudaSuccess) return error;
  const CUresult result = driver.cuLibraryGetGlobal(&address, &bytes, entry.binary->library, entry.name.c_str());
  return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : static_cast<cudaError_t>(result);
}

cudaError_t function_of(const Driver& driver, const void* host, CUfunction& function) {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = Registry::get().kernel(driver, host, kernel); error != cudaSuccess) return error;
  return static_cast<cudaError_t>(driver.cuKernelGetFunction(&function, kernel));
}

}  // namespace softgpu::cudart
