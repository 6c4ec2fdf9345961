// Virtual memory management: reserved addresses, physical memory and the mappings between them are separate objects.
//
//   reserve  [A, A + 4 MiB)            nothing there: any access fails
//   create   M, 2 MiB of device 0      claimed from the device, without an address
//   map      M at A                    still no access
//   access   A for device 0            kernels of device 0, and copies, may use [A, A + 2 MiB)
//
// Physical memory lives by reference: handles, mappings and exported descriptors hold it, in any process. Memory that
// may be exported is a share (device/shares.h) from its first page on, so no kill can leak it or take it away.
//
// Kernels look addresses up through find(): adjacent pages that the device may access appear as one extent, whatever
// they are mapped to.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "softgpu/driver/process.h"
#include "softgpu/mutex.h"

namespace softgpu {

// Pages of a device, given back when the last reference goes.
class PhysicalMemory {
 public:
  PhysicalMemory(DriverDevice& owner, const CUmemAllocationProp& its_properties, std::vector<PageRun> runs,
                 Share share);
  ~PhysicalMemory();
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  DriverDevice& owner;
  const CUmemAllocationProp properties;
  const std::vector<PageRun> runs;
  Share share;  // holds memory that may be exported
  std::uint64_t bytes = 0;
};

class VirtualMemory {
 public:
  static VirtualMemory& instance();

  // Each returns the CUresult of the call of that name. Thread-safe.
  CUresult reserve(std::uint64_t& address, std::uint64_t bytes, std::uint64_t alignment, std::uint64_t hint);
  CUresult free(std::uint64_t address, std::uint64_t bytes);
  CUresult map(std::uint64_t address, std::uint64_t bytes, const std::shared_ptr<PhysicalMemory>& memory);
  CUresult unmap(std::uint64_t address, std::uint64_t bytes);
  // Sets the access of the devices in `mask`, bit = ordinal.
  CUresult set_access(std::uint64_t address, std::uint64_t bytes, std::uint32_t mask, bool allowed);

  // What `ordinal` may access around `address`; empty when nothing.
  Extent find(int ordinal, std::uint64_t address) const;
  // Whether every byte of the range is mapped and accessible to some device.
  bool accessible(std::uint64_t address, std::uint64_t bytes) const;
  // Whether the address is reserved.
  bool contains(std::uint64_t address) const;
  std::uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }

  // The mapping at `address`; its memory is null when there is none.
  struct Mapping {
    Extent extent;
    std::shared_ptr<PhysicalMemory> memory;
    std::uint32_t access = 0;  // of the page at the address
  };
  Mapping mapping_at(std::uint64_t address) const;

 private:
  struct Reservation {
    std::uint64_t bytes = 0;
    std::map<std::uint64_t, Mapping> mappings;  // by address
    std::vector<std::uint32_t> access;          // by page: bit d, device d may access it
  };
  using Reservations = std::map<std::uint64_t, Reservation>;

  // The reservation that contains all of the range, or end().
  Reservations::const_iterator containing(std::uint64_t address, std::uint64_t bytes) const
      SOFTGPU_REQUIRES_SHARED(mutex_);
  Reservations::iterator containing(std::uint64_t address, std::uint64_t bytes) SOFTGPU_REQUIRES(mutex_);

  mutable SharedMutex mutex_;
  Reservations reservations_ SOFTGPU_GUARDED_BY(mutex_);  // by address
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> epoch_{0};
};

// Handles of physical memory: numbers, so that a wrong one is an error and not a crash.
class MemoryHandles {
 public:
  static MemoryHandles& instance();
  CUmemGenericAllocationHandle add(std::shared_ptr<PhysicalMemory> memory);
  // One more reference: to the handle that names the memory, or to a new one.
  CUmemGenericAllocationHandle retain(const std::shared_ptr<PhysicalMemory>& memory);
  std::shared_ptr<PhysicalMemory> find(CUmemGenericAllocationHandle handle);
  bool release(CUmemGenericAllocationHandle handle);

 private:
  struct Entry {
    std::shared_ptr<PhysicalMemory> memory;
    unsigned references = 1;
  };
  Mutex mutex_;
  std::unordered_map<CUmemGenericAllocationHandle, Entry> entries_ SOFTGPU_GUARDED_BY(mutex_);
  CUmemGenericAllocationHandle next_ SOFTGPU_GUARDED_BY(mutex_) = 1;
};

}  // namespace softgpu
