#include "sim/scenario.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>

namespace fairlead::sim {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

Scenario built_in(const std::string& name) {
  return built_in_scenario(name).value();
}

// How often each function is called until `end`, and when first.
struct Sent {
  std::vector<std::size_t> calls;
  std::vector<Instant> first;
};
Sent sent_of(const Scenario& scenario, std::uint64_t seed, Duration end) {
  Sent sent{std::vector<std::size_t>(scenario.functions.size()),
            std::vector<Instant>(scenario.functions.size(), Instant::max())};
  const auto source = make_arrivals(scenario, seed);
  for (auto arrival = source->next(); arrival && arrival->at < Instant(end); arrival = source->next()) {
    if (sent.calls[arrival->function]++ == 0) sent.first[arrival->function] = arrival->at;
  }
  return sent;
}

// Seconds of warm service per second and device.
double load_of(const Scenario& scenario, const Sent& sent, Duration end) {
  double service = 0;
  for (std::size_t i = 0; i < sent.calls.size(); ++i) {
    service += static_cast<double>(sent.calls[i]) * to_seconds(scenario.functions[i].warm);
  }
  return service / to_seconds(end) / static_cast<double>(scenario.devices);
}

std::string error_of(const Scenario& scenario) {
  const Status valid = validate(scenario);
  if (valid) return "valid";
  return valid.error().code == Errc::kInvalidArgument ? valid.error().message : "another code";
}

TEST(Scenario, EveryBuiltInOneIsValidAndFoundByItsName) {
  for (const std::string& name : built_in_scenarios()) {
    EXPECT_TRUE(is_built_in(name));
    EXPECT_EQ(built_in(name).name, name);
    EXPECT_EQ(error_of(built_in(name)), "valid") << name;
  }
  EXPECT_FALSE(is_built_in("zip"));
  const auto unknown = built_in_scenario("zip");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::kNotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("built in are zipf, a, b"));
}

TEST(Scenario, TheLoadIsWhatIsAskedForOnAsManyDevices) {
  constexpr auto kEnd = seconds(20'000);
  for (const char* name : {"zipf", "c", "four-copies"}) {
    Scenario scenario = built_in(name);
    scenario.duration = kEnd;
    scenario.workload.load = 0.7;
    scenario.workload.cv = 0;  // of gaps; how bursty they are is parts_test.cc's
    scenario.devices = 3;
    const double load = load_of(scenario, sent_of(scenario, 1, kEnd), kEnd);
    // Half of the copies come after a third of the time: five sixths of the calls.
    const double wanted = std::string(name) == "four-copies" ? 0.7 * 5 / 6 : 0.7;
    EXPECT_NEAR(load, wanted, 0.1 * wanted) << name;
  }
}

TEST(Scenario, RatesOfZipfFallByRankInAnOrderOfTheSeed) {
  Scenario scenario = built_in("zipf");
  scenario.workload.cv = 0;
  constexpr auto kEnd = seconds(50'000);
  const Sent sent = sent_of(scenario, 1, kEnd);
  std::vector<std::size_t> calls = sent.calls;
  std::sort(calls.rbegin(), calls.rend());
  EXPECT_NEAR(static_cast<double>(calls[0]) / static_cast<double>(calls[1]), 2.83, 0.1) << "2 to the power 1.5";
  EXPECT_NEAR(static_cast<double>(calls[0]) / static_cast<double>(calls[3]), 8, 0.3) << "4 to the power 1.5";
  EXPECT_EQ(sent_of(scenario, 1, kEnd).calls, sent.calls);
  EXPECT_NE(sent_of(scenario, 2, kEnd).calls, sent.calls);
}

TEST(Scenario, OfFourCopiesTwoComeLaterAndOneOfEachPairTwiceAsOften) {
  Scenario scenario = built_in("four-copies");
  scenario.workload.cv = 0;
  const Sent sent = sent_of(scenario, 1, scenario.duration);
  const Instant third(scenario.duration / 3);
  EXPECT_LT(sent.first[0], third);
  EXPECT_LT(sent.first[1], third);
  EXPECT_GE(sent.first[2], third);
  EXPECT_GE(sent.first[3], third);
  EXPECT_NEAR(static_cast<double>(sent.calls[0]) / static_cast<double>(sent.calls[1]), 2, 0.05);
  EXPECT_NEAR(static_cast<double>(sent.calls[0]) / static_cast<double>(sent.calls[2]), 1.5, 0.05);
}

TEST(Scenario, AFloodOffersTheLoadAndOthersAreCalledOnceIn20Seconds) {
  const Scenario scenario = built_in("flood");
  constexpr auto kEnd = seconds(20'000);
  Sent sent = sent_of(scenario, 1, kEnd);
  for (std::size_t i = 20; i < sent.calls.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(sent.calls[i]), 1000, 200) << scenario.functions[i].name;
    sent.calls[i] = 0;
  }
  EXPECT_NEAR(load_of(scenario, sent, kEnd), 1.2, 0.1);
}

TEST(Scenario, OfAClosedLoopEveryClientSendsOneAndThenWaits) {
  Scenario scenario = built_in("closed");
  scenario.workload.clients = 2;
  const auto source = make_arrivals(scenario, 1);
  std::size_t sent = 0;
  while (source->next()) ++sent;
  EXPECT_EQ(sent, 2 * scenario.functions.size());
}

TEST(Scenario, OwnCallsAreThoseOfTheFunctionsWhateverTheLoad) {
  Scenario scenario = built_in("zipf");
  scenario.workload.kind = WorkloadKind::kOwn;
  scenario.workload.load = 500;
  scenario.functions[0].calls = {.per_second = 2, .cv = 0};
  scenario.functions[1].calls = {.per_second = 1, .cv = 0, .most = 7, .begin = seconds(50)};
  const Sent sent = sent_of(scenario, 1, seconds(100));
  EXPECT_NEAR(static_cast<double>(sent.calls[0]), 200, 2);
  EXPECT_EQ(sent.calls[1], 7u);
  EXPECT_GE(sent.first[1], Instant(seconds(50)));
  EXPECT_EQ(std::accumulate(sent.calls.begin() + 2, sent.calls.end(), std::size_t{0}), 0u);
}

TEST(Scenario, ATraceGivesFunctionsLengthAndArrivals) {
  const std::string path = testing::TempDir() + "scenario_test.csv";
  std::ofstream(path) << "at_s,function\n1,a\n2,b\n3.5,a\n";
  Scenario scenario = built_in("zipf");
  scenario.workload.kind = WorkloadKind::kTrace;
  scenario.workload.trace_path = path;
  const Status loaded = load_trace(scenario);
  std::remove(path.c_str());
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(scenario.functions.size(), 2u);
  EXPECT_EQ(scenario.duration, std::chrono::milliseconds(3500));
  EXPECT_EQ(sent_of(scenario, 1, scenario.duration).calls, (std::vector<std::size_t>{2, 1}));
  ASSERT_TRUE(load_trace(scenario)) << "read once: the file is gone";
}

TEST(Scenario, WhatIsBeyondABoundIsNamedWithIt) {
  const auto with = [](auto change) {
    Scenario scenario = built_in("zipf");
    change(scenario);
    return error_of(scenario);
  };
  EXPECT_THAT(with([](Scenario& s) { s.functions.clear(); }), HasSubstr("functions is empty"));
  EXPECT_THAT(with([](Scenario& s) { s.devices = 0; }), HasSubstr("devices is 0, it must be 1 to 1024"));
  EXPECT_THAT(with([](Scenario& s) { s.devices = 1025; }), HasSubstr("devices is 1025"));
  EXPECT_EQ(with([](Scenario& s) { s.devices = 1024; }), "valid");
  EXPECT_THAT(with([](Scenario& s) { s.duration = Duration(0); }), HasSubstr("duration is 0 s"));
  EXPECT_THAT(with([](Scenario& s) { s.noise = 1; }), HasSubstr("noise is 1, it must be 0 or more and below 1"));
  EXPECT_THAT(with([](Scenario& s) { s.workload.load = 0; }), HasSubstr("load is 0, it must be above 0"));
  EXPECT_THAT(with([](Scenario& s) { s.functions[3].warm = Duration(0); }), HasSubstr("must be above 0"));
  EXPECT_THAT(with([](Scenario& s) { s.functions[3].weight = 0; }), HasSubstr("weight 0 must be above 0"));
  EXPECT_THAT(with([](Scenario& s) { s.device.slowdown = {1, 0.9}; }), HasSubstr("slowdown 0.9"));
  EXPECT_THAT(with([](Scenario& s) { s.policy = "none"; }), HasSubstr("none"));
  EXPECT_THAT(with([](Scenario& s) { s.workload.kind = WorkloadKind::kOwn; }), HasSubstr("no function is called"));
  EXPECT_THAT(with([](Scenario& s) { s.workload.calls_per_s = 1e6; }), HasSubstr("workload.calls_per_s is 1000000"));
  EXPECT_THAT(with([](Scenario& s) { s.core.slots_per_gpu = s.core.instances_per_gpu + 1; }), testing::Not("valid"));
}

}  // namespace
}  // namespace fairlead::sim
