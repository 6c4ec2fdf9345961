// How wide a task is: never less than what some order of its kernels has on the device at once.
#include "decide/residency/kernel_width.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

namespace fairlead {
namespace {

using Before = std::vector<std::vector<std::uint32_t>>;

TEST(KernelWidth, OfAChainIsThatOfItsWidestKernel) {
  EXPECT_EQ(most_blocks_at_once({{}, {0}, {1}}, {4, 8, 2}), 8u);
  EXPECT_EQ(most_blocks_at_once({{}}, {7}), 7u);
}

TEST(KernelWidth, OfKernelsSideBySideIsTheirSum) {
  EXPECT_EQ(most_blocks_at_once({{}, {}, {}}, {4, 8, 2}), 14u);
  EXPECT_EQ(most_blocks_at_once({{}, {0}, {0}, {1, 2}}, {64, 4, 6, 8}), 70u);  // the header's example
}

TEST(KernelWidth, AChainGoesOnFromAKernelThatOtherChainsBeganAt) {
  // a ──> b, a ──> c: one of them goes on with a's chain, and the other begins one.
  EXPECT_EQ(most_blocks_at_once({{}, {0}, {0}}, {1, 3, 5}), 8u);
}

TEST(KernelWidth, OfNothingIsNothingAndOfTooMuchIsAllThereIs) {
  EXPECT_EQ(most_blocks_at_once({}, {}), 0u);
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(most_blocks_at_once({{}, {}}, {kMost, kMost}), kMost);
}

TEST(KernelWidth, IsAPartOfTheSms) {
  EXPECT_EQ(width_percent(8, 80), 10);
  EXPECT_EQ(width_percent(9, 80), 12) << "rounded up: 11.25";
  EXPECT_EQ(width_percent(0, 80), 1);
  EXPECT_EQ(width_percent(1, 132), 1);
  EXPECT_EQ(width_percent(80, 80), 100);
  EXPECT_EQ(width_percent(79, 80), 99);
  EXPECT_EQ(width_percent(std::numeric_limits<std::uint64_t>::max(), 80), 100);
}

// By all sets of kernels of which none follows another, directly or not.
std::uint64_t most_of_all_sets(const Before& before, const std::vector<std::uint64_t>& blocks) {
  const std::size_t count = before.size();
  std::vector<std::set<std::uint32_t>> all_before(count);
  for (std::uint32_t k = 0; k < count; ++k) {
    for (const std::uint32_t earlier : before[k]) {
      all_before[k].insert(earlier);
      all_before[k].insert(all_before[earlier].begin(), all_before[earlier].end());
    }
  }
  std::uint64_t most = 0;
  for (std::uint32_t set = 0; set < (1U << count); ++set) {
    std::uint64_t sum = 0;
    bool is_at_once = true;
    for (std::uint32_t k = 0; k < count; ++k) {
      if ((set >> k & 1) == 0) continue;
      sum += blocks[k];
      for (const std::uint32_t earlier : all_before[k]) is_at_once = is_at_once && (set >> earlier & 1) == 0;
    }
    if (is_at_once) most = std::max(most, sum);
  }
  return most;
}

RC_GTEST_PROP(KernelWidth, IsNeverLessThanWhatRunsAtOnceAndNeverMoreThanAll, ()) {
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 10);
  Before before(count);
  std::vector<std::uint64_t> blocks;
  std::uint64_t sum = 0;
  for (std::uint32_t k = 0; k < count; ++k) {
    for (std::uint32_t earlier = 0; earlier < k; ++earlier) {
      if (*rc::gen::inRange(0, 3) == 0) before[k].push_back(earlier);
    }
    blocks.push_back(*rc::gen::inRange<std::uint64_t>(1, 100));
    sum += blocks.back();
  }
  const std::uint64_t most = most_blocks_at_once(before, blocks);
  RC_ASSERT(most >= most_of_all_sets(before, blocks));
  RC_ASSERT(most <= sum);
}

}  // namespace
}  // namespace fairlead
