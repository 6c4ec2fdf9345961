#include "runtime/device_server/range_allocator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

namespace fairlead {
namespace {

TEST(RangeAllocator, TakesTheSmallestPartThatHoldsIt) {
  RangeAllocator ranges;
  ranges.grow(10 * 512);
  EXPECT_EQ(ranges.allocate(512), 0u);
  EXPECT_EQ(ranges.allocate(3 * 512), 512u);
  EXPECT_EQ(ranges.allocate(512), 4u * 512);
  ranges.release(512, 3 * 512);
  EXPECT_EQ(ranges.allocate(2 * 512), 512u);  // the gap of 3, not the end of 5
  EXPECT_EQ(ranges.allocate(513), 5u * 512);  // two units
}

TEST(RangeAllocator, SaysThatPiecesDoNotHoldIt) {
  RangeAllocator ranges;
  ranges.grow(3 * 512);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ranges.allocate(1));
  ranges.release(0, 1);
  ranges.release(1024, 1);
  EXPECT_EQ(ranges.allocate(1024), std::nullopt);
  ranges.release(512, 512);
  EXPECT_EQ(ranges.allocate(3 * 512), 0u);
}

TEST(RangeAllocator, GrowsIntoItsLastFreePart) {
  RangeAllocator ranges;
  ranges.grow(1024);
  ASSERT_EQ(ranges.allocate(512), 0u);
  EXPECT_EQ(ranges.free_at_end(), 512u);
  ranges.grow(512);
  EXPECT_EQ(ranges.allocate(1024), 512u);
  EXPECT_EQ(ranges.free_at_end(), 0u);
}

TEST(RangeAllocator, GivesBackItsFreeEndAndNoMore) {
  RangeAllocator ranges;
  ranges.grow(8 * 512);
  ASSERT_EQ(ranges.allocate(2 * 512), 0u);
  ranges.shrink(4 * 512);
  EXPECT_EQ(ranges.size(), 4u * 512);
  EXPECT_EQ(ranges.free_at_end(), 2u * 512);
  EXPECT_EQ(ranges.allocate(3 * 512), std::nullopt);
  ranges.grow(512);
  EXPECT_EQ(ranges.allocate(3 * 512), 2u * 512);
  EXPECT_DEATH(ranges.shrink(512), "0 are free at the end");
}

RC_GTEST_PROP(RangeAllocator, PartsNeverOverlapAndAllComeBack, ()) {
  constexpr std::uint64_t kSize = 64 * 512;
  RangeAllocator ranges;
  ranges.grow(kSize);
  std::map<std::uint64_t, std::uint64_t> taken;  // offset, rounded size
  const auto steps = *rc::gen::container<std::vector<std::pair<bool, std::uint16_t>>>(
      rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::arbitrary<std::uint16_t>()));
  for (const auto& [take, number] : steps) {
    if (take) {
      const std::uint64_t bytes = 1 + number % 8192;
      const auto offset = ranges.allocate(bytes);
      if (!offset) continue;
      const std::uint64_t size = RangeAllocator::round_up(bytes);
      RC_ASSERT(*offset + size <= kSize);
      const auto next = taken.lower_bound(*offset);
      RC_ASSERT((next == taken.end() || *offset + size <= next->first));
      RC_ASSERT((next == taken.begin() || std::prev(next)->first + std::prev(next)->second <= *offset));
      taken[*offset] = size;
    } else if (!taken.empty()) {
      const auto it = std::next(taken.begin(), static_cast<std::ptrdiff_t>(number % taken.size()));
      ranges.release(it->first, it->second);
      taken.erase(it);
    }
  }
  for (const auto& [offset, size] : taken) ranges.release(offset, size);
  RC_ASSERT(ranges.allocate(kSize) == std::optional<std::uint64_t>(0));
}

}  // namespace
}  // namespace fairlead
