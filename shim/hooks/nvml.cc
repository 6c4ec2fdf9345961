// NVML's memory query, for programs that ask it instead of the driver: under a cap it shows the cap, and as used what
// this process holds.
#include "abi/nvml.h"

#include <algorithm>

#include "shim/driver.h"
#include "shim/gate.h"
#include "shim/resolve/resolver.h"

namespace fairlead::shim {
namespace {

template <typename Memory>
nvmlReturn_t show_capped(nvmlReturn_t result, Memory* memory) {
  const unsigned long long cap = page().memory_cap.load(std::memory_order_relaxed);
  if (result != NVML_SUCCESS || memory == nullptr || cap == 0 || cap >= memory->total) return result;
  memory->total = cap;
  memory->used = std::min<unsigned long long>(page().held.load(std::memory_order_relaxed), cap);
  memory->free = std::min(memory->free, cap - memory->used);
  return result;
}

}  // namespace
}  // namespace fairlead::shim

using namespace fairlead::shim;

#define NVML_HOOK extern "C" __attribute__((visibility("default"))) nvmlReturn_t

NVML_HOOK nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  enter_process();
  const auto real = reinterpret_cast<decltype(&nvmlDeviceGetMemoryInfo)>(real_nvml(NvmlSymbol::kMemoryInfo));
  return real != nullptr ? show_capped(real(device, memory), memory) : NVML_ERROR_LIBRARY_NOT_FOUND;
}
NVML_HOOK nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  enter_process();
  const auto real = reinterpret_cast<decltype(&nvmlDeviceGetMemoryInfo_v2)>(real_nvml(NvmlSymbol::kMemoryInfoV2));
  if (real == nullptr) return NVML_ERROR_LIBRARY_NOT_FOUND;
  const nvmlReturn_t result = real(device, memory);
  if (result == NVML_SUCCESS && page().memory_cap.load(std::memory_order_relaxed) != 0) memory->reserved = 0;
  return show_capped(result, memory);
}
