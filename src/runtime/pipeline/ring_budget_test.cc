// What rings may take. Planted and caught: a hold that is not given back; a bound that counts one function's bytes as all.
#include "runtime/pipeline/ring_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/pipeline/host_ring.h"

namespace fairlead {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(RingBudget, BoundsAFunctionAndTheNode) {
  RingBudget budget({.node = gib(3), .function = gib(2)});
  auto a = budget.take("a", gib(2)).value();
  EXPECT_EQ(budget.take("a", Bytes(1)).error().code, Errc::kTooLarge);
  auto b = budget.take("b", gib(1)).value();
  const auto refused = budget.take("c", Bytes(4096));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kResourceExhausted);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("pipeline-memory is 3221225472 bytes"),
                                             HasSubstr("3221225472 are held"), HasSubstr("4096 more are wanted")));
  EXPECT_THAT(budget.take("a", Bytes(7)).error().message,
              AllOf(HasSubstr("pipeline-function-memory is 2147483648 bytes"), HasSubstr("7 more")));
  a.reset();
  EXPECT_EQ(budget.held(), gib(1));
  EXPECT_TRUE(budget.take("a", gib(2)));
}

TEST(RingBudget, AHoldOfNothingMayGoLast) {
  RingBudget budget({.node = Bytes(10), .function = Bytes(10)});
  auto nothing = budget.take("a", Bytes(0)).value();
  budget.take("a", Bytes(5)).value().reset();
  nothing.reset();
  EXPECT_EQ(budget.held(), Bytes(0));
  EXPECT_TRUE(budget.take("a", Bytes(10)));
}

TEST(RingBudget, AHoldMayOutliveTheBudget) {
  std::shared_ptr<void> hold;
  {
    RingBudget budget({});
    hold = budget.take("a", gib(1)).value();
  }
  hold.reset();
}

TEST(RingBudget, ARingGivesItsBytesBackWhenNobodyReadsItAnyMore) {
  RingBudget budget({.node = mib(1), .function = mib(1)});
  const wire::StageRingShape shape{2, 100'000};
  std::shared_ptr<const HostRing> ring =
      HostRing::make(shape, budget.take("a", Bytes(static_cast<std::int64_t>(shape.bytes()))).value()).value();
  EXPECT_EQ(budget.held("a"), ring->bytes());
  std::shared_ptr<const HostRing> reader = ring;
  ring.reset();
  EXPECT_EQ(budget.held("a").count(), static_cast<std::int64_t>(shape.bytes()));
  reader.reset();
  EXPECT_EQ(budget.held(), Bytes(0));
}

// A flood: whatever is asked for and given back, no bound is passed, and what is free is given.
TEST(RingBudget, NoOrderOfHoldsPassesABound) {
  std::mt19937 random(7);
  RingBudget budget({.node = Bytes(1000), .function = Bytes(300)});
  std::vector<std::pair<std::string, std::pair<std::int64_t, std::shared_ptr<void>>>> held;
  for (int turn = 0; turn < 20'000; ++turn) {
    if (!held.empty() && random() % 3 == 0) {
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
      continue;
    }
    const std::string function(1, static_cast<char>('a' + random() % 6));
    const auto bytes = static_cast<std::int64_t>(random() % 200);
    std::int64_t all = 0, its = 0;
    for (const auto& [name, hold] : held) {
      all += hold.first;
      its += name == function ? hold.first : 0;
    }
    auto hold = budget.take(function, Bytes(bytes));
    ASSERT_EQ(hold.has_value(), all + bytes <= 1000 && its + bytes <= 300);
    if (hold) held.emplace_back(function, std::pair(bytes, *std::move(hold)));
    ASSERT_LE(budget.held(), Bytes(1000));
  }
  held.clear();
  EXPECT_EQ(budget.held(), Bytes(0));
}

}  // namespace
}  // namespace fairlead
