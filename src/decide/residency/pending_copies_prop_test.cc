#include "decide/residency/pending_copies.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace fairlead {
namespace {

constexpr CopyLane kSmall = CopyLane::kSmall, kLarge = CopyLane::kLarge;

TEST(PendingCopies, AUserWaitsForTheLastCopyOfEachStreamThatTouchesItsMemory) {
  PendingCopies copies;
  EXPECT_TRUE(copies.none());
  copies.add(kSmall, {100, 104});
  const std::uint64_t write_back = copies.add(kSmall, {0, 4});
  EXPECT_EQ(copies.before({0, 64})[kSmall], write_back);
  const std::uint64_t load = copies.add(kLarge, {0, 64});
  EXPECT_EQ(copies.before({64, 80}), CopyPoint{});
  EXPECT_EQ(copies.before({3, 5}), (CopyPoint{{write_back, load}}));
  EXPECT_EQ(copies.before({4, 5}), (CopyPoint{{0, load}}));
  copies.over(kSmall, write_back);
  EXPECT_EQ(copies.before({3, 5}), (CopyPoint{{0, load}}));
  EXPECT_FALSE(copies.none());
  copies.over(kLarge, load);
  EXPECT_TRUE(copies.none());
}

// Against one that keeps every copy for ever: whoever waits for what is said has waited for all that touch its memory, and for
// nothing behind the last of them.
RC_GTEST_PROP(PendingCopies, NothingThatTouchesTheMemoryIsLeftOut, ()) {
  struct Known {
    CopyLane lane;
    std::uint64_t number, begin, end;
  };
  PendingCopies copies;
  std::vector<Known> all;
  CopyPoint over;
  const auto steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    const CopyLane lane = *rc::gen::element(kSmall, kLarge);
    const auto begin = *rc::gen::inRange<std::uint64_t>(0, 30);
    const auto end = begin + *rc::gen::inRange<std::uint64_t>(1, 10);
    if (*rc::gen::inRange(0, 4) == 0 && copies.queued()[lane] > over[lane]) {
      over[lane] = *rc::gen::inRange<std::uint64_t>(over[lane] + 1, copies.queued()[lane] + 1);
      copies.over(lane, over[lane]);
    }
    CopyPoint expected;
    for (const Known& copy : all) {
      const bool touches = copy.begin < end && begin < copy.end;
      if (touches && copy.number > over[copy.lane]) expected[copy.lane] = copy.number;
    }
    RC_ASSERT(copies.before({begin, end}) == expected);
    RC_ASSERT(copies.none() == (copies.queued() == over));
    all.push_back({lane, copies.add(lane, {begin, end}), begin, end});
  }
}

}  // namespace
}  // namespace fairlead
