// Books of a scaled function: what was held beside the fluid bound, and who was late in which second.
#include "decide/scaling/scaling_ledger.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

constexpr std::int64_t kBegin = 1'700'000'000'000;

// The header's example.
TEST(ScalingLedger, WhatIsHeldIsAreaTimesTimeAndTheBoundIsWhatRequestsTake) {
  ScalingLedger ledger;
  ledger.set_terms(kBegin, 0.5, 0.005);
  ledger.has(kBegin, {.seats = 2, .ready = 2});
  for (int i = 0; i < 2000; ++i) ledger.arrived(kBegin + 5 * i);
  ledger.has(kBegin + 12'000, {});
  const LedgerTotals totals = ledger.totals(kBegin + 60'000);
  EXPECT_NEAR(totals.held_s, 12, 1e-9) << "and nothing after it";
  EXPECT_NEAR(totals.bound_s, 10, 1e-9);
  EXPECT_EQ(totals.arrived, 2000u);
  EXPECT_EQ(totals.since_ms, kBegin);
}

TEST(ScalingLedger, WhatIsHeldNowCountsBeforeItEnds) {
  ScalingLedger ledger;
  ledger.set_terms(kBegin, 0.25, 0);
  ledger.has(kBegin, {.seats = 1});
  EXPECT_NEAR(ledger.totals(kBegin + 4000).held_s, 1, 1e-9);
  ledger.set_terms(kBegin + 4000, 0.5, 0);  // another rectangle
  EXPECT_NEAR(ledger.totals(kBegin + 8000).held_s, 3, 1e-9);
}

TEST(ScalingLedger, WhoIsLateCountsInTheSecondInWhichItCame) {
  ScalingLedger ledger;
  ledger.arrived(kBegin);
  ledger.arrived(kBegin + 1500);
  ledger.answered(kBegin, true);
  ledger.answered(kBegin + 1500, false);
  ASSERT_EQ(ledger.seconds().size(), 2u);
  EXPECT_EQ(ledger.seconds()[0].late, 1u);
  EXPECT_EQ(ledger.seconds()[1].late, 0u);
  EXPECT_EQ(ledger.seconds()[1].answered, 1u);
  EXPECT_EQ(ledger.totals(kBegin + 2000).late, 1u);
}

TEST(ScalingLedger, SecondsInWhichNothingWasAreNotThereAndTheOldestAreForgotten) {
  ScalingLedger ledger;
  const auto most = static_cast<std::int64_t>(ScalingLedger::kMostSeconds);
  for (std::int64_t i = 0; i < most + 10; ++i) ledger.has(kBegin + 1000 * i, {.seats = 1});
  ASSERT_EQ(ledger.seconds().size(), ScalingLedger::kMostSeconds);
  EXPECT_EQ(ledger.seconds().front().at_s, kBegin / 1000 + 10);
  ledger.has(kBegin + 1000 * (most + 10), {});
  ledger.has(kBegin + 1000 * (most + 20), {});
  EXPECT_EQ(ledger.seconds().back().at_s, kBegin / 1000 + most + 9) << "nothing came, nothing is held";
  ledger.answered(kBegin, true);  // of a second that is forgotten
  EXPECT_EQ(ledger.totals(kBegin).late, 1u);
}

TEST(ScalingLedger, TheMostOfASecondIsKept) {
  ScalingLedger ledger;
  ledger.has(kBegin, {.seats = 1, .ready = 1});
  ledger.has(kBegin + 100, {.seats = 3, .ready = 2, .parked = 1});
  ledger.has(kBegin + 200, {.seats = 1, .ready = 1});
  EXPECT_EQ(ledger.seconds().back().seats, 3u);
  EXPECT_EQ(ledger.seconds().back().parked, 1u);
  ledger.arrived(kBegin + 1000);
  EXPECT_EQ(ledger.seconds().back().seats, 1u) << "what is there when it begins";
}

TEST(ScalingLedger, AClockThatIsSetBackHoldsNothingNegative) {
  ScalingLedger ledger;
  ledger.set_terms(kBegin, 1, 0);
  ledger.has(kBegin, {.seats = 1});
  ledger.has(kBegin - 3'600'000, {.seats = 1});
  EXPECT_GE(ledger.totals(kBegin - 3'600'000).held_s, 0);
  EXPECT_EQ(ledger.seconds().size(), 1u);
}

}  // namespace
}  // namespace fairlead
