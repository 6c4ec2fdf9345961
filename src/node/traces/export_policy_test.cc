#include "node/traces/export_policy.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

TEST(ExportPolicy, WhatACollectorAnswersDecides) {
  for (const unsigned status : {200u, 202u, 204u}) EXPECT_EQ(judge_export(status, 1), ExportVerdict::kTaken) << status;
  for (const unsigned status : {429u, 502u, 503u, 504u}) {
    EXPECT_EQ(judge_export(status, 1), ExportVerdict::kAgain) << status;
    EXPECT_EQ(judge_export(status, kMostExportAttempts), ExportVerdict::kDropped) << status;
  }
  for (const unsigned status : {100u, 301u, 400u, 401u, 404u, 413u, 500u, 501u}) {
    EXPECT_EQ(judge_export(status, 1), ExportVerdict::kDropped) << status;
  }
  EXPECT_EQ(judge_silence(kMostExportAttempts - 1), ExportVerdict::kAgain);
  EXPECT_EQ(judge_silence(kMostExportAttempts), ExportVerdict::kDropped);
}

TEST(ExportPolicy, PausesDoubleAndACollectorMayAskForOthersUpToAMinute) {
  EXPECT_EQ(export_pause(1, ""), 1s);
  EXPECT_EQ(export_pause(4, ""), 8s);
  EXPECT_EQ(export_pause(60, ""), 32s);
  EXPECT_EQ(export_pause(1, "7"), 7s);
  EXPECT_EQ(export_pause(1, "99999999999999999999999"), 60s);
  EXPECT_EQ(export_pause(2, "Fri, 31 Dec 1999 23:59:59 GMT"), 2s);
  EXPECT_EQ(export_pause(2, "-5"), 2s);
}

TEST(ExportPolicy, ATenantWhoHasAllSampledLeavesPlaceForOthers) {
  TracePlaces places;
  std::size_t greedy = 0;
  while (places.take("greedy")) ++greedy;
  EXPECT_EQ(greedy, kMostWaitingTraces / 2);
  std::size_t modest = 0;
  while (places.take("modest")) ++modest;
  EXPECT_EQ(modest, kMostWaitingTraces / 4);
  for (int i = 0; i < 100'000; ++i) places.take("tenant-" + std::to_string(i));
  EXPECT_EQ(places.taken(), kMostWaitingTraces);
  EXPECT_FALSE(places.take("late"));
  places.give_back("modest");
  EXPECT_FALSE(places.take("greedy"));
  EXPECT_TRUE(places.take("late"));
}

TEST(ExportPolicy, TheRatioOfTracesIsKeptAndIsTheSameEverywhere) {
  Rng rng(3);
  int kept = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t low = rng.next();
    EXPECT_TRUE(is_sampled(low, 1));
    EXPECT_FALSE(is_sampled(low, 0));
    if (is_sampled(low, 0.25)) ++kept;
    EXPECT_TRUE(is_sampled(low, 0.5) || !is_sampled(low, 0.25))
        << "a node with a larger ratio keeps what a smaller one does";
  }
  EXPECT_NEAR(kept, 2500, 150);
}

}  // namespace
}  // namespace fairlead
