// The real driver's functions, reached without going through the shim's own hooks: `FAIRLEAD_REAL(cuMemCreate)(...)`
// calls libcuda.so.1's symbol of exactly that name, whatever is preloaded or interposed. Every symbol of hooks.tsv that
// abi/ declares can be called; addresses are looked up at first use and kept.
//
// A symbol that this driver does not have is a function that returns CUDA_ERROR_NOT_FOUND, so calls need no check.
// Threads: any.
#pragma once

#ifndef CUDA_ABI_EXACT_NAMES
#define CUDA_ABI_EXACT_NAMES
#endif

#include <atomic>
#include <cstdint>

#include "abi/cuda.h"

namespace fairlead::shim {

// Every symbol of the driver that the shim knows, in the order of hooks.tsv.
enum class Symbol : std::uint16_t {
#define SYMBOL(name, symbol, decision) symbol,
#include "shim_symbols.inc"
#undef SYMBOL
};
#define SYMBOL(name, symbol, decision) +1
inline constexpr std::uint16_t kSymbols = 0
#include "shim_symbols.inc"
    ;
#undef SYMBOL

namespace driver_detail {
extern std::atomic<void*> addresses[kSymbols];
void* look_up(Symbol symbol);
}  // namespace driver_detail

// The driver's function; never null.
inline void* real_function(Symbol symbol) {
  void* const known = driver_detail::addresses[static_cast<std::uint16_t>(symbol)].load(std::memory_order_acquire);
  return known != nullptr ? known : driver_detail::look_up(symbol);
}
// False: libcuda.so.1 is not there, or has no such symbol.
bool driver_has(Symbol symbol);

// A function of another library of the driver's (libnvidia-ml.so.1), past our hooks; null: not there.
void* real_symbol(const char* library, const char* name);

// libc's dlsym, which a program's calls must reach in the end.
void* real_dlsym();

}  // namespace fairlead::shim

#define FAIRLEAD_REAL(name) \
  (reinterpret_cast<decltype(&::name)>(::fairlead::shim::real_function(::fairlead::shim::Symbol::name)))
