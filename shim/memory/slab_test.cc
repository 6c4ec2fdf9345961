#include "shim/memory/slab.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

namespace fairlead::shim::memory {
namespace {

constexpr CUdeviceptr kStart = 0x7000'0000'0000;

TEST(Slab, BlocksAreAlignedAndDoNotOverlap) {
  SlabSpace space;
  Slab* slab = space.add(kStart, nullptr);
  const Block* first = space.take(1300);
  const Block* second = space.take(1);
  EXPECT_EQ(slab->address_of(first), kStart);
  EXPECT_EQ(slab->address_of(second), kStart + 3 * kUnitBytes);
  EXPECT_EQ(slab->used, 2U);
}

TEST(Slab, FindsTheBlockOfAnInteriorAddress) {
  SlabSpace space;
  Slab* slab = space.add(kStart, nullptr);
  Block* small = space.take(1300);
  Block* large = space.take(kLargestSmall);
  EXPECT_EQ(slab->find(kStart + 1299), small);
  EXPECT_EQ(slab->find(kStart + 1300), nullptr) << "the rest of the last unit is nobody's";
  EXPECT_EQ(slab->find(slab->address_of(large) + kLargestSmall - 1), large);
  EXPECT_EQ(slab->find(kStart + kGranule - 1), nullptr);
  small->going = 1;
  EXPECT_EQ(slab->find(kStart), nullptr) << "freed, not yet given back";
}

TEST(Slab, JoinsFreeNeighboursSoThatTheWholeIsThereAgain) {
  SlabSpace space;
  Slab* slab = space.add(kStart, nullptr);
  std::vector<Block*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(space.take(kGranule / 4));
  EXPECT_EQ(space.take(1), nullptr);
  for (const int i : {1, 3, 2, 0}) space.give(blocks[static_cast<std::size_t>(i)]);
  EXPECT_EQ(slab->used, 0U);
  EXPECT_NE(space.take(kLargestSmall), nullptr);
  EXPECT_NE(space.take(kLargestSmall), nullptr);
}

TEST(Slab, ARemovedSlabGivesNothingAndItsBookkeepingIsUsedAgain) {
  SlabSpace space;
  Slab* slab = space.add(kStart, nullptr);
  space.give(space.take(5000));
  space.remove(slab);
  EXPECT_EQ(space.take(1), nullptr);
  EXPECT_EQ(space.add(kStart + kGranule, nullptr), slab);
  EXPECT_EQ(slab->address_of(space.take(1)), kStart + kGranule);
}

// Against a map of what is taken: disjoint, aligned, inside, found by every address, and all of it free in the end.
RC_GTEST_PROP(SlabProperty, AgreesWithAMap, ()) {
  SlabSpace space;
  std::vector<Slab*> slabs = {space.add(kStart, nullptr), space.add(kStart + 4 * kGranule, nullptr)};
  std::map<CUdeviceptr, std::pair<std::size_t, Block*>> taken;
  const auto steps = *rc::gen::inRange(1, 200);
  for (int i = 0; i < steps; ++i) {
    if (taken.empty() || *rc::gen::inRange(0, 3) != 0) {
      const auto bytes = std::size_t{1} << *rc::gen::inRange(0, 21);
      const auto less = *rc::gen::inRange<std::size_t>(0, bytes);
      Block* block = space.take(bytes - less);
      if (block == nullptr) continue;
      const CUdeviceptr address = Slab::of(block)->address_of(block);
      RC_ASSERT(address % kUnitBytes == 0);
      const auto next = taken.lower_bound(address);
      RC_ASSERT(next == taken.end() || address + bytes - less <= next->first);
      if (next != taken.begin()) {
        RC_ASSERT(std::prev(next)->first + std::prev(next)->second.first <= address);
      }
      taken[address] = {bytes - less, block};
    } else {
      const auto which = std::next(taken.begin(), *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(taken)));
      space.give(which->second.second);
      taken.erase(which);
    }
    for (const auto& [address, block] : taken) {
      RC_ASSERT(Slab::of(block.second)->find(address + block.first - 1) == block.second);
    }
  }
  for (const auto& [address, block] : taken) space.give(block.second);
  for (Slab* slab : slabs) RC_ASSERT(slab->used == 0U && slab->blocks[0].units == kSlabUnits);
  for (Slab* slab : slabs) space.remove(slab);
  space.drop_spares();
}

}  // namespace
}  // namespace fairlead::shim::memory
