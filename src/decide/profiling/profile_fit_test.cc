// The fitted profile: what few trials tell, where it measures next, why it stops, and when it says that the model does not hold.
#include "decide/profiling/profile_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace fairlead {
namespace {

using testing::HasSubstr;

constexpr ThroughputModel kResnet = {.fixed_ms = 1.06, .work_ms = 310.7, .saturation_percent = 24};

ProfileTrial trial(const ThroughputModel& model, int width, int quota = 100, double factor = 1) {
  return {.at = {width, quota}, .rate_per_s = factor * model.rate_per_s(width, quota), .error = 0.05};
}

TEST(ThroughputModel, HasThePapersThroughputs) {
  EXPECT_NEAR(kResnet.rate_per_s(100, 100), 71.37, 0.2);
  EXPECT_NEAR(kResnet.rate_per_s(12, 100), 37.1, 0.2);
  EXPECT_DOUBLE_EQ(kResnet.rate_per_s(24, 100), kResnet.rate_per_s(60, 100));
  EXPECT_DOUBLE_EQ(kResnet.rate_per_s(12, 40), 0.4 * kResnet.rate_per_s(12, 100));
}

TEST(ProfileFit, KnowsNothingBeforeTheFirstTrial) {
  const ProfileFit fit(0.05, 0.05, 35);
  EXPECT_EQ(fit.estimate({}).error, 1);
  EXPECT_EQ(fit.next({{12, 40}}).at, (ProfilePoint{100, 100}));
}

TEST(ProfileFit, ErrorBarsShrinkWithTrialsAndAreWiderFarFromThem) {
  ProfileFit fit(0.05, 0.05, 35);
  fit.add(trial(kResnet, 100));
  const double far = fit.estimate({6, 100}).error;
  EXPECT_GT(far, 5 * fit.estimate({100, 100}).error);
  fit.add(trial(kResnet, 6));
  fit.add(trial(kResnet, 24));
  EXPECT_LT(fit.estimate({6, 100}).error, far / 3);
  for (const int width : {6, 12, 24, 60, 100}) {
    EXPECT_NEAR(fit.estimate({width, 100}).rate_per_s / kResnet.rate_per_s(width, 100), 1, 0.1) << width;
  }
}

// The error bar is one standard deviation: two of them hold the truth in most runs.
TEST(ProfileFit, TheTruthIsWithinTwoErrorBarsMostly) {
  Rng rng(1);
  int within = 0, all = 0;
  for (int run = 0; run < 200; ++run) {
    const ThroughputModel truth = {.fixed_ms = 20 * rng.uniform(),
                                   .work_ms = 300 + 2000 * rng.uniform(),
                                   .saturation_percent = 10 + 90 * rng.uniform()};
    ProfileFit fit(0.05, 0.05, 35);
    for (const int width : {100, 6, 24}) {
      double sum = -6;
      for (int i = 0; i < 12; ++i) sum += rng.uniform();
      fit.add(trial(truth, width, 100, std::exp(0.05 * sum)));
    }
    for (const int width : {8, 12, 40, 80}) {
      const RateEstimate known = fit.estimate({width, 100});
      within += std::abs(std::log(known.rate_per_s / truth.rate_per_s(width, 100))) <= 2 * known.error ? 1 : 0;
      ++all;
    }
  }
  EXPECT_GE(within, all * 0.9);
}

TEST(ProfileFit, MeasuresWhereTheRectangleOfInterestIsKnownLeast) {
  ProfileFit fit(0.05, 0.05, 35);
  fit.add(trial(kResnet, 100));
  const NextTrial next = fit.next({{8, 100}});
  ASSERT_TRUE(next.at);
  EXPECT_LE(next.at->width_percent, 12);  // another trial of the whole device would tell little about 8 %
  EXPECT_THAT(next.why, HasSubstr("tells most"));
}

TEST(ProfileFit, StopsWhereItIsEnoughAndSaysSo) {
  ProfileFit fit(0.05, 0.05, 35);
  NextTrial next;
  while ((next = fit.next({{12, 40}})).at) {
    ASSERT_LT(fit.trials(), 12u);
    fit.add(trial(kResnet, next.at->width_percent, next.at->quota_percent));
  }
  EXPECT_THAT(next.why, HasSubstr("5.0 % is enough"));
  EXPECT_LE(2 * fit.estimate({12, 40}).error, 0.05);
  EXPECT_NEAR(fit.estimate({12, 40}).rate_per_s, kResnet.rate_per_s(12, 40), 0.05 * kResnet.rate_per_s(12, 40));
}

TEST(ProfileFit, StopsAtTheMostTrials) {
  ProfileFit fit(0.001, 0.3, 4);
  for (int i = 0; i < 4; ++i) fit.add(trial(kResnet, 100));
  EXPECT_FALSE(fit.next({{6, 20}}).at);
  EXPECT_EQ(fit.next({{6, 20}}).why, "4 trials were run, 4 is the most");
}

// A function whose throughput is not proportional to the quota: the last trial, at the rectangle itself, shows it.
TEST(ProfileFit, SaysThatTheModelDoesNotHold) {
  ProfileFit fit(0.05, 0.05, 35);
  NextTrial next;
  while ((next = fit.next({{12, 40}})).at) {
    ASSERT_LT(fit.trials(), 12u);
    fit.add(trial(kResnet, next.at->width_percent, next.at->quota_percent, next.at->quota_percent < 100 ? 0.6 : 1));
  }
  EXPECT_GT(fit.worst_misfit(), 3);
  EXPECT_THAT(next.why, HasSubstr("the model does not hold"));
}

}  // namespace
}  // namespace fairlead
