#include "shim/memory/slab.h"

namespace fairlead::shim::memory {
namespace {

unsigned highest_bit(std::uint64_t word) {
  return 63 - static_cast<unsigned>(__builtin_clzll(word));
}

unsigned units_for(std::size_t bytes) {
  return static_cast<unsigned>((bytes + kUnitBytes - 1) / kUnitBytes);
}

// The smallest size of the class that `units` rounds up to: every block listed there or above is large enough.
unsigned rounded_to_class(unsigned units) {
  if (units < 8) return units;
  const unsigned step = 1U << (highest_bit(units) - 3);
  return (units + step - 1) / step * step;
}

void mark_start(Slab& slab, unsigned unit) {
  slab.starts[unit / 64] |= std::uint64_t{1} << unit % 64;
  slab.words |= std::uint64_t{1} << unit / 64;
}

void clear_start(Slab& slab, unsigned unit) {
  slab.starts[unit / 64] &= ~(std::uint64_t{1} << unit % 64);
  if (slab.starts[unit / 64] == 0) slab.words &= ~(std::uint64_t{1} << unit / 64);
}

// The bits up to and including `bit`.
std::uint64_t up_to(unsigned bit) {
  return ~std::uint64_t{0} >> (63 - bit);
}

}  // namespace

Block* Slab::find(CUdeviceptr address) {
  const auto unit = static_cast<unsigned>((address - start) / kUnitBytes);
  unsigned word = unit / 64;
  std::uint64_t bits = starts[word] & up_to(unit % 64);
  if (bits == 0) {
    // Unit 0 always starts a block, so there is a word in front.
    word = highest_bit(words & up_to(word - 1));
    bits = starts[word];
  }
  Block* block = &blocks[word * 64 + highest_bit(bits)];
  return block->asked != 0 && block->going == 0 && address < address_of(block) + block->asked ? block : nullptr;
}

// 0-7 units have a class each, then 8 for every doubling: 8-15 are 8 to 15, 16-17 are 16, ..., 4096 is 80.
unsigned SlabSpace::class_of(unsigned units) {
  if (units < 8) return units;
  const unsigned top = highest_bit(units);
  return (top - 2) * 8 + ((units >> (top - 3)) & 7);
}

void SlabSpace::list(Block* block) {
  const unsigned size_class = class_of(block->units);
  block->asked = 0;
  block->previous = nullptr;
  block->next = free_[size_class];
  if (block->next != nullptr) block->next->previous = block;
  free_[size_class] = block;
  nonempty_[size_class / 64] |= std::uint64_t{1} << size_class % 64;
}

void SlabSpace::unlist(Block* block) {
  const unsigned size_class = class_of(block->units);
  if (block->next != nullptr) block->next->previous = block->previous;
  if (block->previous != nullptr) {
    block->previous->next = block->next;
  } else {
    free_[size_class] = block->next;
    if (block->next == nullptr) nonempty_[size_class / 64] &= ~(std::uint64_t{1} << size_class % 64);
  }
}

// Gives the block this size and tells its successor.
void SlabSpace::set_units(Slab& slab, Block* block, unsigned units) {
  block->units = static_cast<std::uint16_t>(units);
  const unsigned end = slab.unit_of(block) + units;
  if (end < kSlabUnits) slab.blocks[end].before = block->units;
}

Slab* SlabSpace::add(CUdeviceptr start, Region* region) {
  Slab* slab = spare_;
  if (slab != nullptr) {
    spare_ = slab->next_spare;
  } else {
    slab = static_cast<Slab*>(map_aligned(Slab::kSlabBytes));
    if (slab == nullptr) return nullptr;
  }
  slab->start = start;
  slab->region = region;
  slab->next_spare = nullptr;
  slab->blocks[0].before = 0;
  set_units(*slab, &slab->blocks[0], kSlabUnits);
  mark_start(*slab, 0);
  list(&slab->blocks[0]);
  return slab;
}

void SlabSpace::remove(Slab* slab) {
  unlist(&slab->blocks[0]);
  clear_start(*slab, 0);
  slab->next_spare = spare_;
  spare_ = slab;
}

void SlabSpace::drop_spares() {
  while (Slab* slab = spare_) {
    spare_ = slab->next_spare;
    ::munmap(slab, Slab::kSlabBytes);
  }
}

Block* SlabSpace::take(std::size_t bytes) {
  const unsigned units = units_for(bytes);
  const unsigned lowest = class_of(rounded_to_class(units));
  std::uint64_t lists = nonempty_[lowest / 64] & (~std::uint64_t{0} << lowest % 64);
  unsigned base = lowest / 64 * 64;
  if (lists == 0 && base == 0) {
    lists = nonempty_[1];
    base = 64;
  }
  if (lists == 0) return nullptr;
  Block* block = free_[base + static_cast<unsigned>(__builtin_ctzll(lists))];
  unlist(block);
  Slab& slab = *Slab::of(block);
  const unsigned rest = block->units - units;
  if (rest > 0) {
    set_units(slab, block, units);
    Block* cut = block + units;
    cut->before = block->units;
    set_units(slab, cut, rest);
    mark_start(slab, slab.unit_of(cut));
    list(cut);
  }
  block->asked = static_cast<std::uint32_t>(bytes) & 0x7fffffff;
  block->going = 0;
  ++slab.used;
  return block;
}

void SlabSpace::give(Block* block) {
  Slab& slab = *Slab::of(block);
  --slab.used;
  unsigned units = block->units;
  block->asked = 0;
  block->going = 0;
  if (const unsigned end = slab.unit_of(block) + units; end < kSlabUnits && slab.blocks[end].asked == 0) {
    unlist(&slab.blocks[end]);
    clear_start(slab, end);
    units += slab.blocks[end].units;
  }
  if (block->before != 0 && (block - block->before)->asked == 0) {
    Block* front = block - block->before;
    unlist(front);
    clear_start(slab, slab.unit_of(block));
    units += front->units;
    block = front;
  }
  set_units(slab, block, units);
  list(block);
}

}  // namespace fairlead::shim::memory
