// A library of somebody else that stands between a program and the driver, before the shim or after it.
#include <dlfcn.h>

extern "C" __attribute__((visibility("default"))) void* interposer_next_allocate() {
  // Not as the last call, so that the address dlsym returns to is in this library.
  void* volatile found = ::dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  return found;
}

// Its place in the search order is after the shim's only if it has the symbol too.
extern "C" __attribute__((visibility("default"))) int cuMemAlloc_v2(unsigned long long* address, unsigned long bytes) {
  using Allocate = int (*)(unsigned long long*, unsigned long);
  return reinterpret_cast<Allocate>(interposer_next_allocate())(address, bytes);
}
