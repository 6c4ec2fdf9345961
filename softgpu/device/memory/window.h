// The window: the range of this process's addresses in which a device's memory appears. It is reserved without access
// when the device is first used; physical pages are mapped into it where an allocation wants them. A device pointer is
// such an address, so the PTX machine and copies use plain loads and stores once an address has been checked.
//
// The window also answers which allocation contains an address, exact to the byte: per 2 MiB page it knows the
// allocation that covers it, or the slab of small blocks (Slab) that lies there. Host memory that kernels may access
// (pinned, registered) is kept beside it. Lookups take no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "softgpu/device/control.h"
#include "softgpu/device/memory/page_pool.h"
#include "softgpu/device/result.h"
#include "softgpu/mutex.h"
#include "softgpu/ptx/machine.h"

namespace softgpu {

using Extent = ptx::AddressSpace::Extent;

// A 2 MiB page cut into equal blocks. sizes[i] is the exact size of block i, 0 when it is free.
struct Slab {
  explicit Slab(std::uint64_t block) : block_bytes(block), sizes(kPageBytes / block) {}
  std::atomic<std::uint64_t> base{0};
  const std::uint64_t block_bytes;
  std::vector<std::atomic<std::uint32_t>> sizes;
};

class Window final : public ptx::AddressSpace {
 public:
  // Reserves addresses for a device of `capacity` bytes. Error: the address space limit.
  static Result<std::unique_ptr<Window>> reserve(std::uint64_t capacity, int memory_file);

  ptx::AddressSpace::Extent find(std::uint64_t address) const override;
  std::uint64_t epoch() const override { return epoch_.load(std::memory_order_acquire); }

  // Whether `address` lies in the window, allocated or not.
  bool contains(std::uint64_t address) const { return address - base_ < pages_ * kPageBytes; }
  // Whether all of [address, address + bytes) lies in one live extent.
  bool covers(std::uint64_t address, std::uint64_t bytes) const;

  // `count` neighbouring pages of addresses, nothing mapped. 0 when the window is exhausted.
  std::uint64_t take_addresses(std::uint64_t count);
  void return_addresses(std::uint64_t address, std::uint64_t count);
  std::uint64_t window_page(std::uint64_t address) const { return (address - base_) / kPageBytes; }

  // Maps physical pages at `address`; false when the system refuses. unmap() takes them away again: nobody can reach
  // them any more when it returns. What is left there has no access, or is scratch memory if any MemoryUse runs, which
  // may have the address still. REQUIRES: lookups do not find the range.
  bool map(std::uint64_t address, const std::vector<PageRun>& runs);
  void unmap(std::uint64_t address, std::uint64_t count);

  // Declares [address, address + bytes) one allocation, or no longer.
  void add_extent(std::uint64_t address, std::uint64_t bytes);
  void remove_extent(std::uint64_t address, std::uint64_t bytes);
  // Declares the page at slab.base a slab, or no longer. Slabs are never deleted: lookups take no lock.
  void set_slab(std::uint64_t address, Slab* slab);
  Slab* slab_at(std::uint64_t address) const;
  // To be called whenever an extent ends otherwise (a block of a slab is freed).
  void invalidate() { epoch_.fetch_add(1, std::memory_order_acq_rel); }

  // Host memory that kernels may access.
  void add_host(std::uint64_t address, std::uint64_t bytes);
  void remove_host(std::uint64_t address);
  Extent find_host(std::uint64_t address) const;

 private:
  // What covers a page: nothing, an extent (two words) or a slab.
  struct Page {
    std::atomic<std::uint64_t> begin;
    std::atomic<std::uint64_t> end;
    std::atomic<Slab*> slab;
  };

  Window(std::uint64_t base, std::uint64_t pages, Page* table, int memory_file)
      : base_(base), pages_(pages), table_(table), memory_file_(memory_file) {
    free_[0] = pages;
  }
  Page& page(std::uint64_t address) const { return table_[(address - base_) / kPageBytes]; }

  const std::uint64_t base_;
  const std::uint64_t pages_;
  Page* const table_;
  const int memory_file_;
  std::atomic<std::uint64_t> epoch_{1};

  Mutex addresses_mutex_;
  std::map<std::uint64_t, std::uint64_t> free_ SOFTGPU_GUARDED_BY(addresses_mutex_);  // first page -> count

  mutable SharedMutex host_mutex_;
  std::map<std::uint64_t, std::uint64_t> host_ SOFTGPU_GUARDED_BY(host_mutex_);  // begin -> end
  std::atomic<std::size_t> host_count_{0};
};

}  // namespace softgpu
