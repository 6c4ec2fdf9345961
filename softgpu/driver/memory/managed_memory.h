// Managed memory: one address for host and devices, and a record of which device holds which page.
//
// The bytes are ordinary memory of this process, so the host and every device use them directly. What moves is
// *residency*, page by page (2 MiB): a device that touches a page it does not hold claims a page of its physical memory
// for it, as it would on hardware, and the migration is counted and costs modelled time. So a device holds no more than
// it has, while allocations may be larger than any device.
//
// A resident page is evictable (PageEntry): whoever finds the device full, in this process or another, takes those that
// were claimed longest ago. Nothing is copied and nobody is told; the device's page table is the truth, and find()
// compares with it.
//
// Example: 3 pages on a device with room for 2. A kernel touches pages 0, 1, 2: three migrations, and page 0 is evicted.
// The next touch of page 0 is the fourth migration and evicts page 1.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "softgpu/driver/process.h"
#include "softgpu/mutex.h"

namespace softgpu {

class ManagedMemory {
 public:
  // Where a page may be or be wanted: a device's ordinal, or one of these.
  static constexpr int kHost = CU_DEVICE_CPU;
  static constexpr int kNowhere = CU_DEVICE_INVALID;

  static ManagedMemory& instance();

  // The address of new memory, or 0 when the system has none. Thread-safe, as is everything here.
  std::uint64_t allocate(CUcontext context, std::uint64_t bytes, unsigned flags);
  // Frees the allocation that begins at `address`; false when none does.
  bool release(std::uint64_t address);
  // Frees what a context allocated: its part does it when the context ends.
  void release_all(CUcontext context);

  // The allocation around `address`, with its context; an empty extent when there is none.
  struct Allocation {
    Extent extent;
    CUcontext context = nullptr;
  };
  Allocation at(std::uint64_t address) const;

  // What a kernel of `device` may access around `address`: a run of pages that it holds, or a single page that it
  // reaches over the link. Migrates the page if it must; then adds 1 to `migrated`.
  Extent touch(DriverDevice& device, std::uint64_t address, std::atomic<std::uint64_t>& migrated);

  // Makes the pages of the range resident at `location`; how many were not. `location` is remembered.
  std::uint64_t prefetch(std::uint64_t address, std::uint64_t bytes, int location);
  // Takes the range off all devices: its content is not needed any more.
  void discard(std::uint64_t address, std::uint64_t bytes);

  // REQUIRES for both: the range lies in one allocation.
  void advise(std::uint64_t address, std::uint64_t bytes, CUmem_advise advice, int location);
  struct Advice {
    bool read_mostly = false;
    int preferred = kNowhere;
    int prefetched = kNowhere;      // where the last prefetch went
    std::uint32_t accessed_by = 0;  // bit d: device d; bit 31: the host
    bool operator==(const Advice&) const = default;
  };
  // The advice of every page in the range.
  std::vector<Advice> advice(std::uint64_t address, std::uint64_t bytes) const;

  // Grows when a page leaves a device.
  std::uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }

 private:
  struct Range {
    std::uint64_t bytes = 0;
    CUcontext context = nullptr;
    std::vector<Advice> advice;                        // by page
    std::vector<std::atomic<std::uint64_t>> resident;  // by page and device: pack_residence(), 0 when not there
  };
  struct Pages {
    Range* range = nullptr;
    std::uint64_t begin = 0;  // address of the range
    std::uint64_t first = 0;  // pages
    std::uint64_t last = 0;
  };
  Pages find(std::uint64_t address, std::uint64_t bytes) const SOFTGPU_REQUIRES_SHARED(mutex_);
  bool holds(const Range& range, std::uint64_t page, const DriverDevice& device) const;
  bool migrate(Range& range, std::uint64_t page, DriverDevice& device);
  void leave(Range& range, std::uint64_t page, const DriverDevice* except);
  void drop(std::uint64_t address, Range& range);
  std::atomic<std::uint64_t>& residence(const Range& range, std::uint64_t page, int ordinal) const;

  mutable SharedMutex mutex_;
  std::map<std::uint64_t, std::unique_ptr<Range>> ranges_ SOFTGPU_GUARDED_BY(mutex_);  // by address
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> epoch_{0};
};

}  // namespace softgpu
