#include "softgpu/cudart/driver.h"

#include <dlfcn.h>

#include <memory>

namespace softgpu::cudart {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

// Never closed: a driver's threads may outlive the runtime.
void* library() {
  static void* const handle = ::dlopen(kLibrary, RTLD_NOW);
  return handle;
}

// Stands in for entry points the driver lacks; ignores its arguments, whatever they are.
CUresult not_supported() {
  return CUDA_ERROR_NOT_SUPPORTED;
}

template <typename Function>
void resolve(const Driver& driver, const char* name, int version, Function*& entry) {
  void* address = nullptr;
  const CUresult result = driver.cuGetProcAddress(name, &address, version, 0, nullptr);
  if (result != CUDA_SUCCESS || address == nullptr) address = reinterpret_cast<void*>(&not_supported);
  entry = reinterpret_cast<Function*>(address);
}

std::unique_ptr<Driver> resolve_all() {
  auto driver = std::make_unique<Driver>();
  driver->cuGetProcAddress = reinterpret_cast<decltype(driver->cuGetProcAddress)>(driver_symbol("cuGetProcAddress_v2"));
  if (driver->cuGetProcAddress == nullptr) return nullptr;
#define CUDART_DRIVER_ENTRY(name, version, type) resolve(*driver, #name, version, driver->name);
  CUDART_DRIVER_ENTRIES(CUDART_DRIVER_ENTRY)
#undef CUDART_DRIVER_ENTRY
  return driver;
}

}  // namespace

void* driver_symbol(const char* name) {
  return library() != nullptr ? ::dlsym(library(), name) : nullptr;
}

const Driver* load_driver() {
  static const Driver* const driver = resolve_all().release();
  return driver;
}

}  // namespace softgpu::cudart
