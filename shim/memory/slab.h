// Small allocations: many in one granule of 2 MiB, because physical memory can be mapped and unmapped only by granules.
//
// A two-level segregated fit. A slab is 4,096 units of 512 bytes, cut into blocks; free blocks are listed by size class
// (8 for every doubling), and a bitmap says which lists have one. Taking a block rounds the wanted units up to a class, so
// that the first block of the first such list is large enough, and cuts off what is too much; giving one back joins it
// with its free neighbours. No step searches. All of this lies in host memory: the device's is never read.
//
// Which block contains an address: the start of a block is a bit of 64 words, which words are not 0 a bit of one more.
//
// Example: 1,300 bytes are 3 units. From an empty slab: block [0, 3) used, [3, 4096) free; 236 bytes are lost to the unit.
// That loss is always less than a unit. What rounding to a class passes over is at most one eighth of a block, and stays
// there for smaller ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/cuda_types.h"
#include "shim/memory/os.h"

namespace fairlead::shim::memory {

struct Region;

inline constexpr std::size_t kUnitBytes = 512;  // also the alignment of cuMemAlloc
inline constexpr unsigned kSlabUnits = kGranule / kUnitBytes;
inline constexpr std::size_t kLargestSmall = kGranule / 2;  // larger ones get granules of their own, as the driver does

// In zeroed pages, like its slab.
struct Block {
  Block* next;  // of its free list, or of the blocks that wait to be given back
  Block* previous;
  std::uint32_t asked : 31;  // bytes; 0: free
  std::uint32_t going : 1;   // the program has freed it; not yet given back
  std::uint16_t units;
  std::uint16_t before;  // units of the block in front of it; 0: it is the first
};

// Bookkeeping of one granule. Lies at a multiple of kSlabBytes, so that a block finds its slab.
struct Slab {
  static constexpr std::size_t kSlabBytes = 128 << 10;

  CUdeviceptr start;
  Region* region;
  Slab* next_spare;
  unsigned used;                          // blocks
  std::uint64_t words;                    // bit w: starts[w] is not 0
  std::uint64_t starts[kSlabUnits / 64];  // bit u: a block starts at the unit
  Block blocks[kSlabUnits];               // by its first unit; the others are never touched

  static Slab* of(const Block* block) {
    return reinterpret_cast<Slab*>(reinterpret_cast<std::uintptr_t>(block) & ~(kSlabBytes - 1));
  }
  unsigned unit_of(const Block* block) const { return static_cast<unsigned>(block - blocks); }
  CUdeviceptr address_of(const Block* block) const { return start + unit_of(block) * kUnitBytes; }
  // The used block that contains the address; nullptr: none does. REQUIRES: the slab contains it.
  Block* find(CUdeviceptr address);
};
static_assert(sizeof(Slab) <= Slab::kSlabBytes);

// The small allocations of one context. Not thread-safe.
class SlabSpace {
 public:
  // A slab over the granule at `start`, wholly free, and of this space until `remove`; nullptr when the system has no
  // memory. The region is whatever the caller keeps with it.
  Slab* add(CUdeviceptr start, Region* region);
  // REQUIRES: slab->used == 0.
  void remove(Slab* slab);
  // Its slabs are gone already; what was kept for new ones goes too.
  void drop_spares();

  // nullptr: no slab has room. REQUIRES: 0 < bytes <= kLargestSmall.
  Block* take(std::size_t bytes);
  void give(Block* block);

 private:
  static constexpr unsigned kClasses = 96;
  static unsigned class_of(unsigned units);
  void list(Block* block);
  void unlist(Block* block);
  static void set_units(Slab& slab, Block* block, unsigned units);

  std::uint64_t nonempty_[2] = {};
  Block* free_[kClasses] = {};
  Slab* spare_ = nullptr;  // bookkeeping without a granule
};

}  // namespace fairlead::shim::memory
