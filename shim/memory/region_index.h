// Which region contains an address: a radix tree over granules, two levels of 16,384 pointers each (49-bit addresses).
// Example: 0x7f12_3456_7000 is granule 0x3f891a2: root entry 0xfe2, leaf entry 0x11a2.
//
// A look-up takes no lock and reads two words. Nodes are never given back: at most 128 KiB for each 32 GiB of addresses
// ever used.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/memory/region.h"

namespace fairlead::shim::memory {

class RegionIndex {
 public:
  Region* find(CUdeviceptr address) const {
    const std::uint64_t granule = address / kGranule;
    const Leaf* leaf =
        granule < kEntries * kEntries ? root_[granule / kEntries].load(std::memory_order_acquire) : nullptr;
    return leaf != nullptr ? leaf->regions[granule % kEntries].load(std::memory_order_acquire) : nullptr;
  }
  // False: the system has no memory for it, or the address is outside the tree. REQUIRES: one writer at a time.
  bool insert(Region* region) {
    for (CUdeviceptr at = region->start; at < region->start + region->bytes; at += kGranule) {
      if (!set(at / kGranule, region)) {
        remove(region);
        return false;
      }
    }
    return true;
  }
  void remove(const Region* region) {
    for (CUdeviceptr at = region->start; at < region->start + region->bytes; at += kGranule) {
      if (find(at) == region) set(at / kGranule, nullptr);
    }
  }

 private:
  static constexpr std::uint64_t kEntries = 1 << 14;
  struct Leaf {
    std::atomic<Region*> regions[kEntries];
  };
  bool set(std::uint64_t granule, Region* region) {
    if (granule >= kEntries * kEntries) return false;
    std::atomic<Leaf*>& entry = root_[granule / kEntries];
    Leaf* leaf = entry.load(std::memory_order_relaxed);
    if (leaf == nullptr) {
      leaf = static_cast<Leaf*>(map_pages(sizeof(Leaf)));
      if (leaf == nullptr) return false;
      entry.store(leaf, std::memory_order_release);
    }
    leaf->regions[granule % kEntries].store(region, std::memory_order_release);
    return true;
  }

  std::atomic<Leaf*> root_[kEntries] = {};
};

}  // namespace fairlead::shim::memory
