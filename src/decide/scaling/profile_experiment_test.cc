#include "decide/scaling/profile_experiment.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

// The paper's ResNet.
constexpr ThroughputModel kResnet{.fixed_ms = 1.05, .work_ms = 311, .saturation_percent = 24};

struct Laboratory {
  Instant now{1s};
  ProfileExperiment experiment;
  std::vector<ProfilePoint> run;

  explicit Laboratory(ExperimentSettings settings) : experiment(settings) {}

  // A trial whose instance answers as the model says, by quota.
  void one_trial(const ThroughputModel& model, ProfilePoint at) {
    run.push_back(at);
    const auto gap = from_seconds(1 / model.rate_per_s(at.width_percent, at.quota_percent));
    for (int i = 0; i < 100'000 && (experiment.state() != ProfileExperiment::State::kIdle); ++i) {
      if (experiment.state() == ProfileExperiment::State::kEnded) return;
      now += gap;
      experiment.used(mib(1500), Duration(0));
      experiment.answered(now, gap);
      experiment.look(now);
    }
  }
  void all(const ThroughputModel& model) {
    while (const auto at = experiment.next_trial(now)) one_trial(model, *at);
  }
};

ExperimentSettings with_widths() {
  ExperimentSettings settings;
  settings.has_widths = true;
  settings.terms.objective = 69ms;
  return settings;
}

TEST(ProfileExperiment, FindsTheModelWithAQuarterOfTheGrid) {
  Laboratory lab(with_widths());
  lab.all(kResnet);
  ASSERT_EQ(lab.experiment.failed(), "");
  EXPECT_LE(lab.run.size(), 8u);
  const FunctionProfile profile = lab.experiment.profile();
  const ThroughputModel found{profile.fixed_ms, profile.work_ms, profile.saturation_percent};
  EXPECT_NEAR(found.rate_per_s(24, 97), kResnet.rate_per_s(24, 97), 0.05 * kResnet.rate_per_s(24, 97));
  EXPECT_LE(profile.error, 0.05);
  EXPECT_EQ(profile.memory(), mib(1500));
  EXPECT_EQ(profile.trials[0].p50_ms, profile.trials[0].p99_ms);
}

TEST(ProfileExperiment, TheGridIsThePapers) {
  ExperimentSettings settings = with_widths();
  settings.is_grid = true;
  Laboratory lab(settings);
  lab.all(kResnet);
  EXPECT_EQ(lab.run.size(), 35u);
  EXPECT_EQ(lab.run[0], (ProfilePoint{100, 97}));  // 100 % cannot be given
  EXPECT_EQ(lab.run[34], (ProfilePoint{6, 20}));
  EXPECT_EQ(lab.experiment.profile().trials.size(), 35u);
}

TEST(ProfileExperiment, WithoutWidthsAllTrialsTakeAllOfTheSms) {
  Laboratory lab({});
  lab.all(kResnet);
  ASSERT_EQ(lab.experiment.failed(), "");
  EXPECT_LE(lab.run.size(), 3u);
  for (const ProfilePoint& at : lab.run) EXPECT_EQ(at.width_percent, 100);
}

TEST(ProfileExperiment, AnErrorEndsItWithoutAProfile) {
  Laboratory lab(with_widths());
  ASSERT_TRUE(lab.experiment.next_trial(lab.now));
  lab.experiment.fail("it crashed");
  EXPECT_EQ(lab.experiment.failed(), "it crashed");
  EXPECT_FALSE(lab.experiment.next_trial(lab.now));
  lab.experiment.answered(lab.now, 1ms);
  EXPECT_EQ(lab.experiment.calls(), 0u);
}

TEST(ProfileExperiment, WhoNeverAnswersEndsIt) {
  Laboratory lab(with_widths());
  ASSERT_TRUE(lab.experiment.next_trial(lab.now));
  lab.experiment.look(lab.now + 59s);
  EXPECT_EQ(lab.experiment.state(), ProfileExperiment::State::kStarting);
  lab.experiment.look(lab.now + 60s);
  EXPECT_EQ(lab.experiment.failed(), "no answer within 60 s of the start of a trial at 100 % x 97 %");
}

// A function that takes 10 minutes a call would go on for hours.
TEST(ProfileExperiment, AllTrialsTogetherLastHalfAnHour) {
  Laboratory lab(with_widths());
  ASSERT_TRUE(lab.experiment.next_trial(lab.now));
  lab.experiment.answered(lab.now + 30s, 30s);
  lab.experiment.look(lab.now + 1799s);
  EXPECT_EQ(lab.experiment.failed(), "");
  lab.experiment.look(lab.now + 1800s);
  EXPECT_EQ(lab.experiment.state(), ProfileExperiment::State::kEnded);
  EXPECT_EQ(lab.experiment.failed(),
            "it has lasted 30 minutes, the most of an experiment, and 0 of at most 35 trials are measured: send a "
            "sample that "
            "is answered sooner, or measure without --grid");
}

TEST(ProfileExperiment, MoreMemoryThanWasSaidEndsIt) {
  ExperimentSettings settings = with_widths();
  settings.said_memory = mib(1000);
  Laboratory lab(settings);
  lab.all(kResnet);
  EXPECT_EQ(lab.experiment.failed(),
            "an instance uses 1500 MiB of device memory, and gpu:memory-mib is 1000: raise the tag");
}

TEST(ProfileExperiment, AnswersOfTheWarmUpDoNotCount) {
  Laboratory lab(with_widths());
  ASSERT_TRUE(lab.experiment.next_trial(lab.now));
  for (int i = 0; i < 3; ++i) lab.experiment.answered(lab.now += 1s, 1s);  // slow at first
  EXPECT_EQ(lab.experiment.state(), ProfileExperiment::State::kMeasuring);
  for (int i = 0; i < 250; ++i) {
    lab.experiment.answered(lab.now += 10ms, 10ms);
    lab.experiment.look(lab.now);
  }
  ASSERT_EQ(lab.experiment.trials().size(), 1u);
  EXPECT_NEAR(lab.experiment.trials()[0].rate_per_s, 100, 0.1);
  EXPECT_NEAR(lab.experiment.trials()[0].p99_ms, 10, 0.01);
}

TEST(ProfileExperiment, NoSizeAboveTheMostQuota) {
  for (const InstanceSize& size : sizes_on_node(kResnet, true, 97)) EXPECT_LE(size.quota_percent, 97);
  EXPECT_FALSE(best_size_of(sizes_on_node(kResnet, true, 97), {.objective = 10ms}).has_value());
}

}  // namespace
}  // namespace fairlead
