#include "softgpu/device/time/fair_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace softgpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::uint64_t> shares(std::uint64_t total, std::vector<std::uint64_t> demands) {
  return fair_shares(total, demands);
}

std::vector<std::uint64_t> grants(std::uint64_t sms, std::vector<SmDemand> demands) {
  return grant_milli_sms(sms, demands);
}

TEST(FairShares, WhatIsEnoughIsGivenAsAsked) {
  EXPECT_THAT(shares(80, {40, 30}), ElementsAre(40, 30));
  EXPECT_THAT(shares(80, {}), IsEmpty());
}

TEST(FairShares, WhoAsksForLessThanAnEqualPartGetsItAll) {
  EXPECT_THAT(shares(80, {40, 40, 20}), ElementsAre(30, 30, 20));
  EXPECT_THAT(shares(90, {100, 10, 100}), ElementsAre(40, 10, 40));
}

TEST(FairShares, NothingIsLostToRounding) {
  EXPECT_THAT(shares(80, {100, 100, 100}), ElementsAre(26, 27, 27));
  EXPECT_THAT(shares(2, {5, 5, 5}), ElementsAre(0, 1, 1));
}

// Max-min fairness, said directly: whoever gets less than asked has no less than anybody else, rounding aside.
TEST(FairShares, NobodyHasMoreThanSomebodyWhoLacks) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint64_t> demands(1 + random() % 20);
    for (auto& demand : demands) demand = random() % 200;
    const std::uint64_t total = random() % 1000;
    const auto given = fair_shares(total, demands);
    const auto asked = std::accumulate(demands.begin(), demands.end(), std::uint64_t{0});
    EXPECT_EQ(std::accumulate(given.begin(), given.end(), std::uint64_t{0}), std::min(total, asked));
    const auto most = *std::max_element(given.begin(), given.end());
    for (std::size_t i = 0; i < demands.size(); ++i) {
      EXPECT_LE(given[i], demands[i]);
      if (given[i] < demands[i]) {
        EXPECT_GE(given[i] + 1, most);
      }
    }
  }
}

TEST(SmGrants, SharesThatFitAreGranted) {
  EXPECT_THAT(grants(80, {{40, 1000}, {24, 1000}}), ElementsAre(40'000, 24'000));
}

TEST(SmGrants, SharesBeyondTheDeviceContendFairly) {
  EXPECT_THAT(grants(80, {{48, 1000}, {48, 1000}}), ElementsAre(40'000, 40'000));
  EXPECT_THAT(grants(80, {{80, 1000}, {80, 1000}, {80, 1000}}), ElementsAre(26'666, 26'667, 26'667));
}

TEST(SmGrants, ASmallKernelLeavesItsSmsToTheOthers) {
  EXPECT_THAT(grants(80, {{80, 4}, {80, 1000}}), ElementsAre(4'000, 76'000));
}

TEST(SmGrants, BelowNormalGetsWhatNormalLeaves) {
  EXPECT_THAT(grants(80, {{60, 1000, true}, {60, 1000, false}}), ElementsAre(20'000, 60'000));
  EXPECT_THAT(grants(80, {{60, 1000, true}, {80, 1000, false}}), ElementsAre(0, 80'000));
}

}  // namespace
}  // namespace softgpu
