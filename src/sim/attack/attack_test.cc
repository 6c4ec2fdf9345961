#include "sim/attack/attack.h"

#include <gtest/gtest.h>

#include <fstream>

#include "sim/attack/workload_family.h"
#include "sim/preset.h"
#include "sim/simulation.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

std::vector<double> powers(const std::string& family, double each) {
  return std::vector<double>(scaled_by(family)->size(), each);
}

RunResult run(const Scenario& scenario) {
  return Simulation(scenario, 1, make_arrivals(scenario, 1)).run();
}

// ---- families

TEST(WorkloadFamily, UnscaledAllAreTheSameBase) {
  const Scenario base = workload_of("starts", powers("starts", 0));
  EXPECT_EQ(base.functions.size(), 24u);
  EXPECT_EQ(base.functions[0].cold_start, 9030ms);  // three digits of Table 1's
  double load = 0;
  for (const FunctionModel& function : base.functions) load += function.calls.per_second * to_seconds(function.warm);
  EXPECT_NEAR(load, 0.8, 0.01);
  for (const std::string& family : workload_families()) {
    EXPECT_EQ(run(workload_of(family, powers(family, 0))).state_hash, run(base).state_hash) << family;
  }
}

TEST(WorkloadFamily, EachScalesWhatItSays) {
  std::vector<double> one = powers("starts", 0);
  one[1] = 2;
  EXPECT_EQ((*scaled_by("starts"))[1], "cold_start_s of roberta");
  const Scenario starts = workload_of("starts", one);
  EXPECT_NEAR(to_seconds(starts.functions[3].cold_start), 100 * 15.213, 5);
  EXPECT_EQ(starts.functions[0].cold_start, 9030ms);
  EXPECT_EQ(workload_of("sizes", powers("sizes", -2)).functions[0].memory, mib(15));
  EXPECT_EQ(workload_of("sizes", powers("sizes", 2)).functions[0].memory, gib(16));
  EXPECT_EQ(workload_of("bursts", powers("bursts", 2)).functions[0].calls.together, 100u);
  EXPECT_EQ(workload_of("bursts", powers("bursts", 2)).functions[0].calls.cv, 100);
  const Scenario counts = workload_of("counts", powers("counts", 2));
  EXPECT_EQ(counts.functions.size(), 2400u);
  EXPECT_EQ(counts.devices, 100u);
  EXPECT_EQ(workload_of("counts", powers("counts", -2)).functions.size(), 8u);
  EXPECT_EQ(workload_of("counts", powers("counts", -2)).devices, 1u);
}

// A search may go anywhere: nowhere must a run take a hundred times as long.
TEST(WorkloadFamily, ARunHasAboutAsManyInvocationsEverywhere) {
  for (const std::string& family : workload_families()) {
    for (const double power : {-2.0, -0.7, 0.7, 2.0}) {
      const Scenario scenario = workload_of(family, powers(family, power));
      double calls = 0;
      for (const FunctionModel& f : scenario.functions) calls += f.calls.per_second * to_seconds(scenario.duration);
      EXPECT_GT(calls, 290) << family << ' ' << power;
      EXPECT_LT(calls, 1550) << family << ' ' << power;
    }
  }
}

TEST(WorkloadFamily, AnUnknownFamilyIsNamedWithTheKnownOnes) {
  EXPECT_EQ(scaled_by("sizs").error().message,
            "family \"sizs\" is unknown; known are starts, run-times, sizes, bursts, counts");
}

// ---- comparison

Scenario two_functions() {
  Scenario scenario = *built_in_scenario("zipf");
  scenario.functions.resize(2);
  scenario.workload.kind = WorkloadKind::kOwn;
  scenario.functions[0] = {.name = "small", .warm = 1s, .calls = {.per_second = 0.1}};
  scenario.functions[1] = {.name = "large", .warm = 1s, .calls = {.per_second = 0.8}};
  scenario.duration = 600s;
  return scenario;
}

TEST(Comparison, TheThreeRunOnTheSameWorkWithTheirOwnSettings) {
  Scenario scenario = two_functions();
  scenario.seeds = {1, 2};
  const Comparison comparison = compare(scenario);
  const RunResult& fcfs = comparison.rival(Rival::kFcfs);
  EXPECT_EQ(comparison.node.arrived(), fcfs.arrived());
  EXPECT_EQ(comparison.node.arrived(), comparison.rival(Rival::kPaper).arrived());
  apply(Preset::kPaper, scenario);
  RunResult paper = Simulation(scenario, 1, make_arrivals(scenario, 1)).run();
  paper.merge(Simulation(scenario, 2, make_arrivals(scenario, 2)).run());
  EXPECT_EQ(comparison.rival(Rival::kPaper).state_hash, paper.state_hash);
  EXPECT_DOUBLE_EQ(comparison.ratio(Measure::kMean, Rival::kFcfs),
                   comparison.node.latency.mean_seconds() / fcfs.latency.mean_seconds());
}

TEST(Comparison, AFlowIsWithinItsShareByItsWeight) {
  Scenario scenario = two_functions();
  const RunResult result = run(scenario);
  EXPECT_EQ(within_share(scenario, result), (std::vector<char>{true, false}));
  scenario.functions[1].weight = 9;
  EXPECT_EQ(within_share(scenario, result), (std::vector<char>{false, true}));
  scenario.functions[1].weight = 1;
  scenario.devices = 2;
  EXPECT_EQ(within_share(scenario, result), (std::vector<char>{true, true}));
}

TEST(Comparison, BeyondItsBoundsItSaysWhatAndByHowMuch) {
  Comparison comparison;
  for (RunResult* run : {&comparison.node, &comparison.rivals[0], &comparison.rivals[1]}) run->functions.resize(1);
  comparison.within_share = {true};
  comparison.node.latency.add(13s);
  comparison.rivals[0].latency.add(10s);
  comparison.rivals[1].latency.add(20s);
  EXPECT_EQ(beyond_bounds(comparison),
            std::vector<std::string>{"mean is 1.30 x the better of fcfs and paper, the bound is 1.2 x"});
  comparison.late.push_back({"small", 5s, 4s});
  EXPECT_EQ(beyond_bounds(comparison).back(), "small waited 5.000 s at the head of its queue, the bound is 4.000 s");
}

// The wait that is compared: B's one call waits for the run before it, A's third only since A's second went.
TEST(Comparison, TheWaitIsThatAtTheHeadOfTheQueue) {
  Scenario scenario = two_functions();
  scenario.functions.resize(1);
  scenario.functions[0] = {
      .name = "f", .warm = 2s, .cold_start = 0s, .calls = {.per_second = 0.1, .together = 3, .most = 3}};
  scenario.noise = 0;
  scenario.core.slots_per_gpu = 1;
  const RunResult result = run(scenario);
  EXPECT_NEAR(to_seconds(result.functions[0].greatest_wait), 2, 0.01);
  EXPECT_NEAR(to_seconds(result.latency.greatest()), 6, 0.01);
}

// ---- the attack

TEST(Attack, IsTheSameOnAnyNumberOfThreads) {
  const auto tried = [](unsigned threads) {
    std::vector<std::array<double, kRatios>> ratios;
    const auto attacks = *attack({.family = "sizes", .evaluations = 60, .threads = threads}, nullptr);
    for (const Attack& one : attacks) ratios.push_back(one.ratios);
    return ratios;
  };
  EXPECT_EQ(tried(1), tried(4));
}

TEST(Attack, WhatItWritesIsWhatItRan) {
  const auto tried = *attack({.family = "bursts", .evaluations = 30}, nullptr);
  const Attack& worst = worst_of(tried, Measure::kMean, Rival::kPaper);
  const auto scenario = parse_scenario(attack_toml(worst), "file", *built_in_scenario("zipf"));
  ASSERT_TRUE(scenario) << scenario.error().message;
  const Comparison again = compare(*scenario);
  for (const Measure measure : kMeasures) {
    for (const Rival rival : kRivals) EXPECT_DOUBLE_EQ(again.ratio(measure, rival), worst.ratio(measure, rival));
  }
  EXPECT_GE(worst.ratio(Measure::kMean, Rival::kPaper), tried.front().ratio(Measure::kMean, Rival::kPaper));
}

TEST(Attack, TheMostSevereComeFirst) {
  Attack mean{.family = "a", .ratios = {2.4, 1, 1, 1, 1, 1}}, tail{.family = "b", .ratios = {1, 1, 1, 4.5, 1, 1}},
      flow{.family = "c", .ratios = {1, 1, 1, 1, 9, 9}};
  const auto worst = most_severe({flow, mean, tail}, 2);
  ASSERT_EQ(worst.size(), 2u);
  EXPECT_EQ(worst[0].family, "b");
  EXPECT_DOUBLE_EQ(worst[0].severity(), 3);
  EXPECT_DOUBLE_EQ(worst[1].severity(), 2);
}

}  // namespace
}  // namespace fairlead::sim
