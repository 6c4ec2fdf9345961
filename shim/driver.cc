#include "shim/driver.h"

#include <dlfcn.h>

namespace fairlead::shim {
namespace {

const char* const kNames[] = {
#define SYMBOL(name, symbol, decision) #symbol,
#include "shim_symbols.inc"
#undef SYMBOL
};

CUresult missing() {
  return CUDA_ERROR_NOT_FOUND;
}
// A program that finds our cuInit without a driver on the machine must hear that there is no device.
CUresult no_driver(unsigned int) {
  return CUDA_ERROR_NO_DEVICE;
}

using Dlsym = void* (*)(void*, const char*);

void* open_library(const char* name) {
  void* const loaded = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  return loaded != nullptr ? loaded : ::dlopen(name, RTLD_LAZY);
}

void* find_dlsym() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* const found = ::dlvsym(RTLD_NEXT, "dlsym", version)) return found;
  }
  return nullptr;
}

// Looked for once; the handle is kept for as long as the process lives, so that what was handed out stays valid.
void* driver_library() {
  static std::atomic<void*> library{nullptr};
  void* found = library.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = open_library("libcuda.so.1");
    library.store(found, std::memory_order_release);
  }
  return found;
}

}  // namespace

void* real_dlsym() {
  static std::atomic<void*> known{nullptr};
  void* found = known.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = find_dlsym();
    known.store(found, std::memory_order_release);
  }
  return found;
}

namespace driver_detail {

std::atomic<void*> addresses[kSymbols];

void* look_up(Symbol symbol) {
  const auto index = static_cast<std::uint16_t>(symbol);
  void* const library = driver_library();
  void* found = library != nullptr ? reinterpret_cast<Dlsym>(real_dlsym())(library, kNames[index]) : nullptr;
  if (found == nullptr) {
    found = symbol == Symbol::cuInit ? reinterpret_cast<void*>(no_driver) : reinterpret_cast<void*>(missing);
  }
  addresses[index].store(found, std::memory_order_release);
  return found;
}

}  // namespace driver_detail

bool driver_has(Symbol symbol) {
  void* const function = real_function(symbol);
  return function != reinterpret_cast<void*>(missing) && function != reinterpret_cast<void*>(no_driver);
}

void* real_symbol(const char* library, const char* name) {
  void* const handle = open_library(library);
  return handle != nullptr ? reinterpret_cast<Dlsym>(real_dlsym())(handle, name) : nullptr;
}

}  // namespace fairlead::shim
