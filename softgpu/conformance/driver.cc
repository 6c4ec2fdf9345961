#include "softgpu/conformance/driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace softgpu::conformance {
namespace {

Driver loaded;
void* handle = nullptr;
std::string library_name;

CUresult missing() {
  return CUDA_ERROR_NOT_SUPPORTED;
}

// `missing` takes no arguments; the caller's are in registers and on its own stack, and are ignored.
template <class Function>
void resolve(void* library, const char* name, Function& entry) {
  void* found = ::dlsym(library, name);
  entry = reinterpret_cast<Function>(found != nullptr ? found : reinterpret_cast<void*>(&missing));
}

}  // namespace

bool open_driver(const char* library, std::string& error) {
  // With lazy loading the first launch of a kernel loads it, which may wait for all work of the device. Cases that hold one
  // stream back and launch into another would wait forever; the guide allows that, and drivers do it. Before the driver
  // is opened, because it reads the variable then.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  library_name = library;
  handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    error = ::dlerror();
    return false;
  }
#define CONFORMANCE_STRING(name) #name
#define CONFORMANCE_RESOLVE(name) resolve(handle, CONFORMANCE_STRING(name), loaded.name);
  CONFORMANCE_ENTRY_POINTS(CONFORMANCE_RESOLVE)
  if (::dlsym(handle, "cuInit") == nullptr) {
    error = std::string(library) + " has no cuInit";
    return false;
  }
  return true;
}

const Driver& driver() {
  return loaded;
}

const char* driver_library() {
  return library_name.c_str();
}

void* driver_symbol(const char* name) {
  return ::dlsym(handle, name);
}

std::string name_of(CUresult result) {
  const char* name = nullptr;
  if (loaded.cuGetErrorName(result, &name) == CUDA_SUCCESS && name != nullptr) return name;
  return "error " + std::to_string(static_cast<int>(result));
}

}  // namespace softgpu::conformance
