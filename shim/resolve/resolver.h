// Which hook stands for a function that a program is about to get.
//
// The real resolver is asked first, and the pointer it gives is recognised by identity: it is the driver's symbol X, so
// the program gets the hook of X, which has X's signature. So no version or stream mode can be mistaken for another, and
// what is not recognised stays as it is.
//
//   cuGetProcAddress("cuMemAlloc", 13000)  driver: address of cuMemAlloc_v2    program: hook of cuMemAlloc_v2
//   cuGetProcAddress("cuMemAlloc", 2000)   driver: address of cuMemAlloc       program: the stub that counts it
//
// Threads: any.
#pragma once

#include <cstdint>

namespace fairlead::shim {

// `function` is what cuGetProcAddress gave for `name`, a name without version or stream mode.
void* hook_for_name(const char* name, void* function);

// `function` is what dlsym gave for `symbol` in some library. Any symbol: those that are not hooked come back at once.
void* hook_for_symbol(const char* symbol, void* function);

// NVML's own functions behind the hooks; null: there is no NVML here.
enum class NvmlSymbol : std::uint8_t { kMemoryInfo, kMemoryInfoV2 };
void* real_nvml(NvmlSymbol symbol);

}  // namespace fairlead::shim
