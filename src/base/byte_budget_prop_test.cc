// What a budget promises, whoever asks for what. Planted and caught: the holder's own bytes left out of the rule; used_ not reduced by
// a lease that moves; a lease that gives its bytes back twice.
#include "base/byte_budget.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace fairlead {
namespace {

TEST(ByteBudget, SharesAsTheExampleSays) {
  ByteBudget budget(1000);
  ByteBudget::Lease first, second, third;
  first.open(budget, "flooder");
  EXPECT_TRUE(first.try_hold(500));
  EXPECT_FALSE(first.try_hold(501));
  EXPECT_EQ(first.bytes(), 500U);
  second.open(budget, "other");
  EXPECT_TRUE(second.try_hold(250));
  EXPECT_FALSE(second.try_hold(251));
  third.open(budget, "third");
  EXPECT_TRUE(third.try_hold(125));
  EXPECT_TRUE(first.try_hold(100));
  EXPECT_EQ(budget.used(), 475U);
}

TEST(ByteBudget, ManyLeasesOfOneHolderCountTogether) {
  ByteBudget budget(1000);
  std::vector<ByteBudget::Lease> leases(100);
  for (auto& lease : leases) {
    lease.open(budget, "flooder");
    lease.try_hold(10);
  }
  EXPECT_EQ(budget.held_by("flooder"), 500U);
  EXPECT_EQ(budget.holders(), 1U);
  leases.clear();
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_EQ(budget.holders(), 0U) << "nobody who holds nothing is remembered";
}

TEST(ByteBudget, WhatIsThereAlreadyCountsAndStopsOthers) {
  ByteBudget budget(1000);
  ByteBudget::Lease answer, request;
  answer.open(budget, "a");
  answer.hold(1500);
  EXPECT_TRUE(budget.is_full());
  request.open(budget, "b");
  EXPECT_FALSE(request.try_hold(1));
  answer.release();
  EXPECT_FALSE(budget.is_full());
  EXPECT_TRUE(request.try_hold(500));
}

RC_GTEST_PROP(ByteBudget, NeverBeyondTheTotalAndAlwaysRoomForANewcomer, ()) {
  const auto total = *rc::gen::inRange<std::size_t>(1, 100'000);
  ByteBudget budget(total);
  std::vector<ByteBudget::Lease> leases(8);
  const std::vector<std::string> names{"a", "b", "c"};
  for (std::size_t i = 0; i < leases.size(); ++i) leases[i].open(budget, names[i % names.size()]);
  for (int step = 0; step < 200; ++step) {
    auto& lease = leases[*rc::gen::inRange<std::size_t>(0, leases.size())];
    const auto wanted = *rc::gen::inRange<std::size_t>(0, 2 * total);
    const std::size_t before = lease.bytes(), used_before = budget.used();
    if (!lease.try_hold(wanted)) {
      RC_ASSERT(lease.bytes() == before && budget.used() == used_before);
    }
    if (*rc::gen::inRange(0, 4) == 0) lease = std::move(leases[*rc::gen::inRange<std::size_t>(0, leases.size())]);
    for (std::size_t i = 0; i < leases.size(); ++i) {
      if (!leases[i]) leases[i].open(budget, names[i % names.size()]);
    }
    std::size_t sum = 0;
    for (const auto& one : leases) sum += one.bytes();
    RC_ASSERT(sum == budget.used());
    RC_ASSERT(budget.used() <= budget.total());
    ByteBudget::Lease newcomer;
    newcomer.open(budget, "newcomer");
    RC_ASSERT(newcomer.try_hold((budget.total() - budget.used()) / 2));
    newcomer.release();
  }
}

}  // namespace
}  // namespace fairlead
