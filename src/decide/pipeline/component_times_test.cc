// What components take: seen, or corrected by what was seen elsewhere. Planted and caught: one run believed; types that
// were not seen left as they were said; a correction of the host's times; a mean that stays for ever; entries without end.
#include "decide/pipeline/component_times.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

Dag one(std::vector<SliceTime> times) {
  Dag dag;
  dag.components.push_back({.name = "c", .task = "c", .times = std::move(times)});
  return dag;
}
SliceTime said(const std::string& slice, Duration mean) {
  return {.slice = slice, .mean = mean, .deviation = {}, .seen = 0};
}
void run(ComponentTimes& times, const std::string& slice, Duration time, int runs) {
  for (int i = 0; i < runs; ++i) times.ran("x", slice, time);
}

TEST(ComponentTimes, TypesThatWereNotSeenFollowThoseThatWere) {
  ComponentTimes times;
  run(times, "1g", 6ms, 5);
  const Dag dag = times.applied(one({said("1g", 4ms), said("2g", 2ms)}), {{"x"}});
  EXPECT_EQ(dag.components[0].times[0], (SliceTime{"1g", 6ms, Duration(1), 5}));
  EXPECT_EQ(dag.components[0].times[1].mean, 3ms);
  EXPECT_EQ(dag.components[0].times[1].seen, 0u) << "it is predicted";
}

TEST(ComponentTimes, FewRunsAreNotBelieved) {
  ComponentTimes times;
  run(times, "1g", 6ms, 4);
  EXPECT_FALSE(times.seen("x", "1g"));
  EXPECT_EQ(times.applied(one({said("1g", 4ms)}), {{"x"}}).components[0].times[0].mean, 4ms);
  run(times, "1g", 6ms, 1);
  ASSERT_TRUE(times.seen("x", "1g"));
  EXPECT_EQ(times.seen("x", "1g")->mean, 6ms);
  EXPECT_FALSE(times.seen("x", "2g"));
  EXPECT_FALSE(times.seen("y", "1g"));
}

TEST(ComponentTimes, OfWhomNobodySaidAnythingAllAreEqualUntilTheyAreSeen) {
  Dag dag = one({said("1g", 70ms), said("7g", 10ms)});
  dag.components.push_back(dag.components[0]);
  dag.components.push_back(dag.components[0]);
  dag.components[2].times = {said("1g", 8ms)};
  ComponentTimes times;
  run(times, "1g", 7ms, 5);
  const Dag now = times.applied(dag, {{"x", false}, {"y", false}, {"z", true}});
  EXPECT_EQ(now.components[0].times[1].mean, 1ms);
  EXPECT_EQ(now.components[1].times[0].mean, 7ms) << "a tenth of what it was taken for, as the other";
  EXPECT_EQ(now.components[1].times[0].seen, 0u);
  EXPECT_EQ(now.components[2].times[0].mean, 8ms) << "an author said that";
}

TEST(ComponentTimes, TheMeanFollowsAndSaysHowFarRunsAreApart) {
  ComponentTimes times;
  for (int i = 0; i < 1000; ++i) times.ran("x", "1g", i % 2 == 0 ? 4ms : 6ms);
  EXPECT_NEAR(to_ms(times.seen("x", "1g")->mean), 5, 0.1);
  EXPECT_NEAR(to_ms(times.seen("x", "1g")->deviation), 1, 0.1);
  run(times, "1g", 20ms, 500);
  EXPECT_NEAR(to_ms(times.seen("x", "1g")->mean), 20, 0.1);
}

TEST(ComponentTimes, WhatNeedsNoGpuOrIsUnknownStaysAsItIs) {
  ComponentTimes times;
  run(times, "host", 9ms, 10);
  run(times, "1g", 9ms, 10);
  Dag dag = one({said("host", 1ms)});
  dag.components[0].needs_gpu = false;
  EXPECT_EQ(times.applied(dag, {{"x"}}), dag);
  const Dag unknown = one({said("1g", 4ms)});
  EXPECT_EQ(times.applied(unknown, {{""}}), unknown);
  EXPECT_EQ(times.applied(unknown, {}), unknown);
}

TEST(ComponentTimes, WhatWasSeenElsewhereCountsUntilItIsSeenHere) {
  ComponentTimes times;
  times.learn("x", "1g", {.mean = 6ms, .deviation = 1ms, .runs = 20});
  EXPECT_EQ(times.seen("x", "1g")->mean, 6ms);
  times.learn("x", "1g", {.mean = 8ms, .deviation = 1ms, .runs = 20});
  EXPECT_EQ(times.seen("x", "1g")->mean, 8ms) << "the last one";
  run(times, "1g", 60ms, 4);
  EXPECT_EQ(times.seen("x", "1g")->mean, 8ms);
  run(times, "1g", 60ms, 1);
  EXPECT_EQ(times.seen("x", "1g")->mean, 60ms) << "whatever was told, and of however many runs";
}

// Who lies of one type is not believed of the others once one was seen.
TEST(ComponentTimes, WhatWasToldCorrectsNothingBesideWhatWasSeen) {
  ComponentTimes times;
  times.learn("x", "7g", {.mean = Duration(0), .deviation = {}, .runs = 1'000'000});
  const Dag dag = one({said("1g", 4ms), said("2g", 2ms), said("7g", 1ms)});
  EXPECT_EQ(times.applied(dag, {{"x"}}).components[0].times[1].mean, Duration(2))
      << "until then it is all that is known";
  run(times, "1g", 8ms, 5);
  const Dag now = times.applied(dag, {{"x"}});
  EXPECT_EQ(now.components[0].times[1].mean, 4ms);
  EXPECT_EQ(now.components[0].times[2].mean, Duration(1)) << "and of the type itself for nobody but its tenant";
  ASSERT_FALSE(check_dag(now).has_value() && check_dag(now)->kind == DagProblemKind::kTime);
}

TEST(ComponentTimes, WhoRanLongestAgoIsForgotten) {
  ComponentTimes times;
  run(times, "1g", 6ms, 10);
  times.learn("old", "1g", {.mean = 1ms, .deviation = {}, .runs = 9});
  for (std::size_t i = 0; i < ComponentTimes::kMost - 1; ++i) {
    times.ran("x", "1g", 6ms);
    times.ran(std::to_string(i), "1g", 1ms);
  }
  EXPECT_TRUE(times.seen("x", "1g"));
  EXPECT_FALSE(times.seen("old", "1g"));
}

}  // namespace
}  // namespace fairlead
