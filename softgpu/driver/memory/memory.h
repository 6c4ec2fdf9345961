// Addresses that a program gives: which memory they name.
#pragma once

#include <cstdint>

#include "softgpu/driver/context/context.h"

namespace softgpu {

// Frees device memory of `context`; false when `address` begins no allocation of it. Waits for nobody.
bool release_memory(CUcontext context, std::uint64_t address);

// The active context that allocated what lies at `address`, or null.
CUcontext memory_owner(std::uint64_t address);

// What lies at an address.
struct Known {
  enum class Kind {
    kNothing,  // memory the driver does not know, or none at all
    kDevice,   // cuMemAlloc and its kin, imported memory
    kMapped,   // virtual memory (cuMemMap)
    kManaged,  // cuMemAllocManaged; the device is that of its context
    kHost,     // pinned or registered
  };
  Kind kind = Kind::kNothing;
  Extent extent;                   // of the allocation or mapping; empty for kNothing
  DriverDevice* device = nullptr;  // where the memory is; null for host memory
};
Known find_memory(std::uint64_t address);

// The live allocation of any device, or the pinned host memory, that contains `address`; empty when there is none.
Extent find_extent(std::uint64_t address);

// Where one side of a copy lies.
struct Place {
  DriverDevice* device = nullptr;  // null: host
  bool pinned = false;             // host memory known to the driver, or managed
  bool pageable() const { return device == nullptr && !pinned; }
};

// INVALID_VALUE when the range is among a device's addresses but not within one live allocation or accessible mappings,
// or leaves pinned memory.
CUresult locate(std::uint64_t address, std::uint64_t bytes, Place& place);

}  // namespace softgpu
