// Unions of intervals, by hand and against a bit for each unit of time.
#include "shim/covered_time.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bitset>

namespace fairlead::shim {
namespace {

TEST(CoveredTime, CountsWhatOverlapsOnce) {
  CoveredTime time;
  EXPECT_EQ(time.add(0, 10), 10u);
  EXPECT_EQ(time.add(20, 30), 10u);
  EXPECT_EQ(time.add(5, 25), 10u);
  EXPECT_EQ(time.add(0, 30), 0u);
  EXPECT_EQ(time.add(30, 31), 1u) << "what touches does not overlap";
  EXPECT_EQ(time.add(40, 40), 0u);
  EXPECT_EQ(time.add(50, 40), 0u);
}

TEST(CoveredTime, AgreesWithABitForEachUnit) {
  EXPECT_TRUE(rc::check("the sum of what is fresh is what is covered", [] {
    constexpr int kUnits = 60;  // at most 30 gaps: nothing is forgotten
    std::bitset<kUnits> covered;
    CoveredTime time;
    for (int i = 0; i < 50; ++i) {
      const auto begin = *rc::gen::inRange<std::uint64_t>(0, kUnits);
      const auto end = *rc::gen::inRange<std::uint64_t>(begin, kUnits);
      const std::size_t before = covered.count();
      for (std::uint64_t unit = begin; unit < end; ++unit) covered.set(unit);
      RC_ASSERT(time.add(begin, end) == covered.count() - before);
    }
  }));
}

TEST(CoveredTime, ForgetsTheOldestGapsOnly) {
  CoveredTime time;
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(time.add(10 * i, 10 * i + 5), 5u);
  EXPECT_EQ(time.add(9500, 10'000), 250u) << "the last hundred";
  EXPECT_EQ(time.add(0, 1), 1u) << "too long ago";
  EXPECT_EQ(time.add(9500, 10'000), 0u);
}

}  // namespace
}  // namespace fairlead::shim
