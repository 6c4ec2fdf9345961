#include "decide/scaling/profile_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// The paper's ResNet.
constexpr ThroughputModel kResnet{.fixed_ms = 1.05, .work_ms = 311, .saturation_percent = 24};

struct Laboratory {
  Instant now{1s};
  double slowdown = 1.25;  // beside a copy
  // The copy answers where this is true of what has passed since the trial beside it began.
  std::function<bool(Duration)> copy_answers = [](Duration) { return true; };
  std::size_t beside = 0;  // trials that had a copy
  ProfileExperiment experiment;
  std::vector<ProfilePoint> run;

  explicit Laboratory(ExperimentSettings settings) : experiment(settings) {}

  // A trial whose instance answers as the model says, by quota.
  void one_trial(const ThroughputModel& model, ProfilePoint at) {
    run.push_back(at);
    const bool has_copy = experiment.has_neighbour();
    beside += has_copy ? 1 : 0;
    const Instant began = now;
    const auto gap = from_seconds((has_copy ? slowdown : 1) / model.rate_per_s(at.width_percent, at.quota_percent));
    for (int i = 0; i < 100'000 && (experiment.state() != ProfileExperiment::State::kIdle); ++i) {
      if (experiment.state() == ProfileExperiment::State::kEnded) return;
      now += gap;
      experiment.used(mib(1500), Duration(0));
      experiment.answered(now, gap);
      experiment.look(now);
      if (!has_copy || !copy_answers(now - began)) continue;
      experiment.neighbour_answered(now);
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
  settings.why_alone = "it is about the grid";
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

// ---- beside a copy of itself

TEST(ProfileExperiment, TheBestRectangleIsTriedBesideACopyAtTheEnd) {
  Laboratory lab(with_widths());
  lab.all(kResnet);
  ASSERT_EQ(lab.experiment.failed(), "");
  EXPECT_EQ(lab.beside, 1u);
  const FunctionProfile profile = lab.experiment.profile();
  ASSERT_TRUE(profile.beside);
  EXPECT_EQ(profile.alone, "");
  EXPECT_NEAR(profile.beside->slowdown, 1.25, 0.01);
  EXPECT_NEAR(profile.beside->error, std::hypot(0.01, 0.01), 1e-9) << "of two trials";
  EXPECT_EQ(lab.run.back(), (ProfilePoint{12, 97}));
  const auto is_it = [](const MeasuredTrial& one) { return one.width_percent == 12 && one.quota_percent == 97; };
  const MeasuredTrial& alone = *std::find_if(profile.trials.begin(), profile.trials.end(), is_it);
  EXPECT_NEAR(profile.beside->trial.rate_per_s * 1.25, alone.rate_per_s, 0.01 * alone.rate_per_s);
  EXPECT_EQ(profile.beside->trial.width_percent, 12);
  EXPECT_EQ(profile.trials.size(), lab.run.size() - 1) << "that beside a copy is none of those that the model is of";
  EXPECT_THAT(lab.experiment.doing(), HasSubstr("; beside a copy of itself it is 1.25 times as slow"));
  EXPECT_EQ(profile.ended.find("beside"), std::string::npos) << profile.ended;
}

TEST(ProfileExperiment, ThatBesideACopyLeavesTheModelAsItIs) {
  ExperimentSettings alone = with_widths();
  alone.why_alone = "its caller wants it alone";
  Laboratory first(alone), second(with_widths());
  first.all(kResnet);
  second.all(kResnet);
  const FunctionProfile without = first.experiment.profile();
  FunctionProfile with = second.experiment.profile();
  EXPECT_FALSE(without.beside);
  EXPECT_EQ(without.alone, "its caller wants it alone");
  EXPECT_EQ(first.beside, 0u);
  EXPECT_THAT(first.experiment.doing(), HasSubstr("not tried beside a copy of itself: its caller wants it alone"));
  with.beside.reset();
  with.alone = without.alone;
  EXPECT_EQ(with, without);
}

// 96 % of the SMs are best: two have no room. So half of the device is measured, alone and beside a copy.
TEST(ProfileExperiment, WhoIsWiderThanHalfOfTheDeviceIsComparedAtHalfOfIt) {
  ExperimentSettings settings = with_widths();
  settings.terms.objective = 110ms;
  Laboratory lab(settings);
  lab.all({.fixed_ms = 0, .work_ms = 8000, .saturation_percent = 100});
  ASSERT_EQ(lab.experiment.failed(), "");
  const FunctionProfile profile = lab.experiment.profile();
  ASSERT_TRUE(profile.beside);
  EXPECT_EQ(profile.beside->trial.width_percent, kWidestOfTwo);
  EXPECT_EQ(profile.trials.back().width_percent, kWidestOfTwo);
  EXPECT_EQ(profile.trials.back().quota_percent, profile.beside->trial.quota_percent);
  EXPECT_NEAR(profile.beside->slowdown, 1.25, 0.01);
}

TEST(ProfileExperiment, WithoutWidthsThereIsNoRoomBesideIt) {
  Laboratory lab({});
  lab.all(kResnet);
  EXPECT_EQ(lab.beside, 0u);
  EXPECT_EQ(lab.experiment.profile().alone, "an instance takes all of the SMs");
}

TEST(ProfileExperiment, ACopyThatNeverAnswersIsLeftOut) {
  Laboratory lab(with_widths());
  lab.copy_answers = [](Duration) { return false; };
  lab.all(kResnet);
  ASSERT_EQ(lab.experiment.failed(), "");
  const FunctionProfile profile = lab.experiment.profile();
  EXPECT_FALSE(profile.beside);
  EXPECT_EQ(profile.alone, "the copy beside it did not answer within 60 s");
}

// Of 2 s that are measured, it is there for 1: half of what would be found is of an instance alone.
TEST(ProfileExperiment, ACopyThatHangsInTheMiddleIsLeftOut) {
  Laboratory lab(with_widths());
  lab.copy_answers = [](Duration passed) { return passed < 1500ms; };
  lab.all(kResnet);
  ASSERT_EQ(lab.experiment.failed(), "");
  EXPECT_FALSE(lab.experiment.profile().beside);
  EXPECT_THAT(lab.experiment.profile().alone, HasSubstr("the copy beside it did not answer for 1."));
}

TEST(ProfileExperiment, ACopyThatWasSilentForASecondOfTwoIsLeftOut) {
  Laboratory lab(with_widths());
  lab.copy_answers = [](Duration passed) { return passed < 800ms || passed > 1800ms; };
  lab.all(kResnet);
  EXPECT_FALSE(lab.experiment.profile().beside);
  EXPECT_THAT(lab.experiment.profile().alone, HasSubstr("the copy beside it did not answer for 1."));
}

// A last answer after enough is known: one that hangs just before the end has none.
TEST(ProfileExperiment, ACopyThatHangsAtTheVeryEndIsLeftOut) {
  Laboratory lab(with_widths());
  lab.copy_answers = [](Duration passed) { return passed < 2450ms; };  // half a second warms up, 2 s are measured
  lab.all(kResnet);
  EXPECT_FALSE(lab.experiment.profile().beside);
  EXPECT_THAT(lab.experiment.profile().alone, HasSubstr("the copy beside it did not answer for 0."));
}

TEST(ProfileExperiment, WhatGoesWrongBesideACopyEndsItWell) {
  Laboratory lab(with_widths());
  while (const auto at = lab.experiment.next_trial(lab.now)) {
    if (!lab.experiment.has_neighbour()) {
      lab.one_trial(kResnet, *at);
      continue;
    }
    lab.experiment.answered(lab.now += 1s, 1s);
    lab.experiment.give_trial_up("a call failed");
    EXPECT_EQ(lab.experiment.state(), ProfileExperiment::State::kIdle);
    EXPECT_FALSE(lab.experiment.has_neighbour());
    lab.experiment.neighbour_answered(lab.now);  // of one that is there no more
  }
  EXPECT_EQ(lab.experiment.failed(), "");
  EXPECT_FALSE(lab.experiment.profile().beside);
  EXPECT_EQ(lab.experiment.profile().alone, "a call failed");
}

TEST(ProfileExperiment, WhatIsSaidOfAFailureBesideACopyIsBounded) {
  Laboratory lab(with_widths());
  while (const auto at = lab.experiment.next_trial(lab.now)) {
    if (!lab.experiment.has_neighbour()) {
      lab.one_trial(kResnet, *at);
      continue;
    }
    std::string said = "a call failed:";
    for (int i = 0; i < 10'000; ++i) said += "\u00e9";
    lab.experiment.give_trial_up(said);
  }
  const std::string alone = lab.experiment.profile().alone;
  EXPECT_LE(alone.size(), 503u);
  EXPECT_THAT(alone, testing::EndsWith("\u00e9..."));
}

TEST(ProfileExperiment, MemoryBeyondTheTagBesideACopyLeavesTheCopyOut) {
  ExperimentSettings settings = with_widths();
  settings.said_memory = mib(1500);
  Laboratory lab(settings);
  while (const auto at = lab.experiment.next_trial(lab.now)) {
    if (lab.experiment.has_neighbour()) {
      lab.experiment.used(mib(1501), Duration(0));
    } else {
      lab.one_trial(kResnet, *at);
    }
  }
  EXPECT_EQ(lab.experiment.failed(), "");
  EXPECT_THAT(lab.experiment.profile().alone, HasSubstr("raise the tag"));
}

TEST(ProfileExperiment, ATrialThatIsGivenUpBeforeEnoughIsKnownEndsItWithoutAProfile) {
  Laboratory lab(with_widths());
  ASSERT_TRUE(lab.experiment.next_trial(lab.now));
  lab.experiment.give_trial_up("a call failed");
  EXPECT_EQ(lab.experiment.failed(), "a call failed");
}

TEST(ProfileExperiment, HalfAnHourBesideACopyLeavesTheCopyOut) {
  Laboratory lab(with_widths());
  while (const auto at = lab.experiment.next_trial(lab.now)) {
    if (!lab.experiment.has_neighbour()) {
      lab.one_trial(kResnet, *at);
      continue;
    }
    lab.experiment.look(lab.now += 30min);
  }
  EXPECT_EQ(lab.experiment.failed(), "");
  EXPECT_THAT(lab.experiment.profile().alone, HasSubstr("it has lasted 30 minutes"));
}

// The copy starts later: what the trial does until then is not beside it.
TEST(ProfileExperiment, NothingIsMeasuredBeforeTheCopyAnswers) {
  Laboratory lab(with_widths());
  lab.copy_answers = [](Duration passed) { return passed > 20s; };
  lab.all(kResnet);
  const FunctionProfile profile = lab.experiment.profile();
  ASSERT_TRUE(profile.beside) << profile.alone;
  EXPECT_LE(static_cast<double>(profile.beside->trial.requests), 3 * profile.beside->trial.rate_per_s);
}

TEST(SizesOnNode, WhoMayHaveANeighbourIsCountedOnWithWhatWasMeasuredBesideOne) {
  const auto alone = sizes_on_node(kResnet, true, 97), beside = sizes_on_node(kResnet, true, 97, 1.5);
  ASSERT_EQ(alone.size(), beside.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const double slower = alone[i].width_percent < 100 ? 1.5 : 1;
    EXPECT_NEAR(beside[i].rate_per_s * slower, alone[i].rate_per_s, 1e-9 * alone[i].rate_per_s);
    EXPECT_NEAR(to_ms(beside[i].execution), slower * to_ms(alone[i].execution), 1e-5);
  }
}

}  // namespace
}  // namespace fairlead
