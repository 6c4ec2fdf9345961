#include "sim/simulation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "base/check.h"
#include "decide/queueing/policy.h"
#include "decide/queueing/window.h"
#include "sim/experiment.h"
#include "sim/html_report.h"
#include "sim/preset.h"
#include "sim/settings.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

RunResult run(const Scenario& scenario, std::uint64_t seed = 1) {
  return Simulation(scenario, seed, make_arrivals(scenario, seed)).run();
}

Scenario scenario(const std::string& name) {
  return *built_in_scenario(name);
}

TEST(Simulation, TheSameSeedGivesTheSameRunAndAnotherSeedAnother) {
  for (const std::string& name : built_in_scenarios()) {
    const Scenario s = scenario(name);
    EXPECT_EQ(run(s, 1).state_hash, run(s, 1).state_hash) << name;
    EXPECT_NE(run(s, 1).state_hash, run(s, 2).state_hash) << name;
  }
}

TEST(Simulation, EveryInvocationIsAnsweredOnce) {
  for (const std::string_view policy : policy_names()) {
    Scenario s = scenario("a");
    s.policy = policy;
    const RunResult result = run(s);
    std::uint64_t answered = 0;
    for (const FunctionResult& function : result.functions) {
      EXPECT_EQ(function.arrived, function.answered) << policy;
      EXPECT_EQ(function.answered, function.cold + function.host_warm + function.device_warm) << policy;
      answered += function.answered;
    }
    EXPECT_EQ(answered, result.latency.count());
    EXPECT_GT(answered, 1000u);
  }
}

TEST(Simulation, PoliciesAreComparedOnTheSameWork) {
  Scenario s = scenario("b");
  const RunResult one = run(s);
  s.policy = "fcfs";
  const RunResult other = run(s);
  for (std::size_t f = 0; f < one.functions.size(); ++f) {
    EXPECT_EQ(one.functions[f].arrived, other.functions[f].arrived);
  }
}

// One function of 1 s on an idle device, no noise: its first call pays the start, the others nothing.
TEST(Simulation, AnUnloadedFunctionTakesItsTime) {
  Scenario s = scenario("zipf");
  s.functions.resize(1);
  s.functions[0].warm = 1s;
  s.functions[0].cold_start = 9s;
  s.noise = 0;
  s.workload.load = 0.1;
  s.workload.cv = 0;
  const RunResult result = run(s);
  EXPECT_EQ(result.cold(), 1u);
  EXPECT_NEAR(to_seconds(result.latency.percentile(0.5)), 1.0, 0.02);
  EXPECT_NEAR(to_seconds(result.latency.greatest()), 10.0, 0.02);
  EXPECT_NEAR(result.busy_seconds / result.seconds, 0.1, 0.01);
}

TEST(Simulation, WithoutAPoolEveryStartIsCold) {
  Scenario s = scenario("zipf");
  s.policy = "fcfs-naive";
  s.duration = 300s;
  const RunResult result = run(s);
  EXPECT_EQ(result.cold(), result.arrived());
}

TEST(Simulation, ATenantsFloodDoesNotDrownTheOther) {
  // Of twenty seeds: the light tenant's 99th percentile in one run is a few calls.
  const auto p99_of_light = [](const Scenario& s) {
    Histogram light;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const RunResult result = Simulation(s, seed, make_arrivals(s, seed)).run();
      for (std::size_t f = 20; f < 24; ++f) light.merge(result.functions[f].latency);
    }
    return to_seconds(light.percentile(0.99));
  };
  for (const Preset preset : {Preset::kPaper, Preset::kNode}) {
    Scenario s = scenario("flood");
    apply(preset, s);
    const double flat = p99_of_light(s);
    s.policy_options.by_tenant = true;
    EXPECT_LE(p99_of_light(s), (preset == Preset::kPaper ? 0.1 : 0.2) * flat);
  }
}

TEST(Simulation, MemoryLeavesInWholeRegionsWhereSoSet) {
  Scenario s = scenario("b");
  for (FunctionModel& function : s.functions) function.memory = gib(3);
  const auto gib_per_move = [&] {
    const RunResult result = run(s);
    return result.swapped_gib / static_cast<double>(result.swap_ins + result.swap_outs);
  };
  EXPECT_LT(gib_per_move(), 2.9);
  s.device.region = gib(4);
  EXPECT_GT(gib_per_move(), 2.95);  // but for moves of instances that end meanwhile
}

// What strikes is checked after every event inside of the run; here that it strikes, and that it can be shown again.
TEST(Simulation, StartingAheadServesWarmWorkDuringStarts) {
  Scenario s = scenario("b");
  apply(Preset::kPaper, s);
  const RunResult held = run(s);
  s.core.starts_per_gpu = 4;
  const RunResult ahead = run(s);
  EXPECT_EQ(ahead.latency.count(), held.latency.count());
  EXPECT_LT(ahead.latency.mean_seconds(), 0.8 * held.latency.mean_seconds());
  s.device.start_slowdown = 100;
  EXPECT_GT(run(s).latency.mean_seconds(), held.latency.mean_seconds()) << "interference is not modelled";
}

TEST(Faults, EveryKindStrikesAndARunCanBeRepeated) {
  Scenario s = scenario("a");
  s.faults = true;
  s.duration = 300s;
  Faults::Counts struck{};
  std::uint64_t found_again = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const RunResult result = run(s, seed);
    EXPECT_EQ(run(s, seed).state_hash, result.state_hash) << seed;
    for (std::size_t i = 0; i < struck.size(); ++i) struck[i] += result.faults[i];
    found_again += result.restarts_survived;
    for (const FunctionResult& f : result.functions) EXPECT_EQ(f.arrived, f.answered + f.failed + f.refused) << seed;
  }
  for (std::size_t i = 0; i < struck.size(); ++i) EXPECT_GT(struck[i], 0u) << fault_name(static_cast<Fault>(i));
  EXPECT_GT(found_again, 0u);
}

// A core that admits more than it may is found out, with the seed.
TEST(FaultsDeathTest, AViolationIsFoundAndNamesItsSeed) {
  Scenario s = scenario("a");
  s.faults = true;
  const CheckNote note("seed 7");
  EXPECT_DEATH(
      {
        Scenario wrong = s;
        Simulation simulation(wrong, 7, make_arrivals(wrong, 7));
        wrong.core.slots_per_gpu = 1;  // the core has two
        simulation.run();
      },
      "slots in use(.|\n)*seed 7");
}

TEST(Experiment, TheNumberOfThreadsChangesNothing) {
  Scenario s = scenario("d");
  s.duration = 300s;
  s.seeds = {1, 2, 3, 4};
  const auto all = *variants(s, {"mqfq-sticky", "fcfs"}, "pool.instances", {"4", "8"});
  ASSERT_EQ(all.size(), 4u);
  const auto one = run_all(all, 1, nullptr), four = run_all(all, 4, nullptr);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(one[i].total.state_hash, four[i].total.state_hash);
  EXPECT_EQ(all[1].label, "mqfq-sticky pool.instances=8");
}

TEST(HtmlReport, NamesCannotBecomeMarkup) {
  Scenario s = scenario("four-copies");
  s.functions[0].name = "<script>alert(1)</script>";
  s.duration = 60s;
  const auto outcomes = run_all(*variants(s, {}, "", {}), 1, nullptr);
  const std::string html = html_report("a & b", outcomes);
  EXPECT_EQ(html.find("<script>"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(html.find("a &amp; b"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
}

// ---- workloads

// Trace 4 of the MQFQ-Sticky paper's Table 3: 2.69 invocations a second at a utilisation of 0.771.
TEST(Workload, AzureLikeHasTheCallsAndTheLoadAskedForTogether) {
  Scenario s = scenario("e");
  s.workload.load = 0.771;
  s.workload.calls_per_s = 2.69;
  s.duration = 20'000s;
  for (const std::size_t devices : {1, 2}) {
    s.devices = devices;
    ASSERT_TRUE(validate(s));
    double calls = 0, seconds = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const auto arrivals = make_arrivals(s, seed);
      for (auto next = arrivals->next(); next && next->at < Instant(s.duration); next = arrivals->next()) {
        ++calls;
        seconds += to_seconds(s.functions[next->function].warm);
      }
    }
    const double total = 10 * to_seconds(s.duration) * static_cast<double>(devices);
    EXPECT_NEAR(calls / total, 2.69, 0.1) << devices;
    EXPECT_NEAR(seconds / total, 0.771, 0.03) << devices;
  }
  s.workload.calls_per_s = 100;
  EXPECT_EQ(
      validate(s).error().message,
      "workload.calls_per_s is 100, with these functions at a load of 0.771 it must be above 0.172 and below 29.654");
}

// ---- presets

// What a stranger gets by `fairlead sim` is what he gets by `fairlead serve`.
TEST(Preset, BuiltInScenariosHaveTheNodesSettings) {
  for (const std::string& name : built_in_scenarios()) {
    const Scenario s = scenario(name);
    EXPECT_EQ(s.policy, policy_names().front()) << name;
    EXPECT_EQ(s.core.eviction, EvictionKind::kCost) << name;
    EXPECT_EQ(s.core.starts_per_gpu, 4u) << name;
    EXPECT_TRUE(s.core.no_cold_duplicates) << name;
  }
}

TEST(Preset, OneSetsAllThatTheOtherSet) {
  for (const auto& [first, second] : {std::pair("paper", "node"), std::pair("node", "paper")}) {
    Scenario both = scenario("a"), one = scenario("a");
    ASSERT_TRUE(set(both, "policy.over_run_s", "3"));
    ASSERT_TRUE(set(both, "preset", first));
    ASSERT_TRUE(set(both, "preset", second));
    ASSERT_TRUE(set(one, "preset", second));
    EXPECT_EQ(run(both).state_hash, run(one).state_hash) << second;
  }
}

TEST(Preset, ASweepOverPresetsIsLabelledByWhatRuns) {
  Scenario s = scenario("d");
  s.duration = 60s;
  const auto all = *variants(s, {}, "preset", {"node", "paper"});
  EXPECT_EQ(all[0].label, "mqfq-setup preset=node");
  EXPECT_EQ(all[1].label, "mqfq-sticky preset=paper");
  EXPECT_EQ((*variants(s, {"fcfs"}, "preset", {"paper"}))[0].label, "fcfs preset=paper");
}

// ---- settings and files

std::string error_of(const std::string& key, const std::string& value) {
  Scenario s = scenario("zipf");
  const Status status = set(s, key, value);
  return status ? "" : status.error().message;
}

TEST(Settings, ErrorsNameTheKeyTheValueAndTheBound) {
  EXPECT_EQ(error_of("pool.slots", "0"), "pool.slots is \"0\", it must be a number from 1 to 1024");
  EXPECT_EQ(error_of("noise", "x"), "noise is \"x\", it must be a number from 0 to 0.9");
  EXPECT_EQ(error_of("workload.kind", "poisson"),
            "workload.kind is \"poisson\", it must be one of zipf, azure, four-copies, flood, closed, own");
  EXPECT_EQ(error_of("workload.lod", "1"), "workload.lod is no setting; `fairlead sim --settings` lists them");
  EXPECT_EQ(error_of("slots", "1"), "slots is no setting; near it are pool.dynamic_slots, pool.slots");
  EXPECT_EQ(error_of("pool.tokens", "0"), "pool.slots is \"0\", it must be a number from 1 to 1024") << "the old name";
  EXPECT_EQ(error_of("workload.changes", "10:1,5:2"), "workload.changes has 5 s after 10 s, times must not fall");
  EXPECT_EQ(error_of("policy.over_run_s", "-1"),
            "policy.over_run_s is \"-1\", it must be a number from 0 to 1000000000");
}

TEST(Settings, EveryParameterOfAPolicyIsOneWithItsBoundsAndWhoseItIs) {
  const std::vector<SettingHelp> help = settings();
  for (const ParameterInfo* parameter : policy_parameters()) {
    const std::string key = fmt::format("policy.{}", parameter->name);
    Scenario s = scenario("zipf");
    EXPECT_TRUE(set(s, key, fmt::format("{}", parameter->least))) << key;
    EXPECT_TRUE(s.policy_options.parameters.contains(parameter->name)) << key;
    EXPECT_EQ(error_of(key, "-1"),
              fmt::format("{} is \"-1\", it must be a number from {} to {}", key, parameter->least, parameter->most));
    const auto shown = std::find_if(help.begin(), help.end(), [&](const auto& setting) { return setting.key == key; });
    ASSERT_NE(shown, help.end()) << key;
    EXPECT_EQ(shown->meaning.find(parameter->meaning), 0u) << key;
    EXPECT_NE(shown->meaning.find('('), std::string::npos) << key;
  }
}

class ScenarioFile : public ::testing::Test {
 protected:
  Result<Scenario> read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_scenario(path_, scenario("zipf"));
  }
  std::string error(const std::string& text) {
    const auto read_back = read(text);
    if (read_back) return "";
    return read_back.error().message.substr(path_.size());
  }
  ~ScenarioFile() override { std::remove(path_.c_str()); }

  const std::string path_ = ::testing::TempDir() + "scenario.toml";
};

TEST_F(ScenarioFile, SetsWhatItSaysAndKeepsTheRest) {
  const auto read_back = read(R"(
name = "mine"
base = "b"
duration_s = 60
seeds = [3, 5]
[policy]
name = "mqfq-setup"
over_run_s = 2.5
[device]
slowdown = [1, 1.5]
[workload]
load = 0.5
changes = [[0, 1], [30, 4]]
[[function]]
name = "f"
warm_s = 0.5
cold_start_s = 2
objective_s = 3
copies = 2
)");
  ASSERT_TRUE(read_back) << read_back.error().message;
  EXPECT_EQ(read_back->name, "mine");
  EXPECT_EQ(read_back->core.instances_per_gpu, 8u);  // of b
  EXPECT_EQ(read_back->seeds, (std::vector<std::uint64_t>{3, 5}));
  EXPECT_EQ(read_back->policy, "mqfq-setup");
  EXPECT_EQ(read_back->policy_options.get(kOverRun), 2500ms);
  EXPECT_EQ(read_back->device.slowdown, (std::vector<double>{1, 1.5}));
  ASSERT_EQ(read_back->workload.changes.size(), 2u);
  EXPECT_EQ(read_back->workload.changes[1].at, 30s);
  ASSERT_EQ(read_back->functions.size(), 2u);
  EXPECT_EQ(read_back->functions[1].name, "f-2");
  EXPECT_EQ(read_back->functions[1].objective, 3s);
}

TEST_F(ScenarioFile, ErrorsNameTheLineOrTheKey) {
  EXPECT_EQ(error("pool = {").substr(0, 3), ":1:");
  EXPECT_EQ(error("[pool]\nslots = 0\n"), ": pool.slots is \"0\", it must be a number from 1 to 1024");
  EXPECT_EQ(error("colour = 1\n"), ": colour is no setting; `fairlead sim --settings` lists them");
  EXPECT_EQ(error("[[function]]\nname = \"f\"\n"), ": function.warm_s of f is missing");
  EXPECT_EQ(error("[[function]]\nwarm_s = -1\n"), ": function.warm_s must be a number from 1e-06 to 1000000000");
  EXPECT_EQ(error("[[function]]\nwarm_s = 1\nmemory_mib = 1e300\n"),
            ": function.memory_mib must be a number from 0 to 1000000000");
  EXPECT_EQ(error("[[function]]\nwarm_s = 1\ncopies = 1e9\n"), ": function.copies must be a number from 1 to 100000");
  EXPECT_EQ(error("[=\n").substr(0, 12), " is no TOML:") << "the library asserts of it";
  EXPECT_EQ(error("seeds = []\n"), ": seeds must be a number of seeds or a list of numbers");
  EXPECT_EQ(error("[pool]\ninstances = 1\n"),
            ": instances_per_gpu is 1, it must be at least slots_per_gpu, which is 2");
  EXPECT_NE(error("base = \"nowhere\"\n"), "");
  EXPECT_EQ(error("preset = \"papers\"\n"), ": preset is \"papers\", it must be node or paper");
  EXPECT_EQ(
      error("[workload]\nkind = \"own\"\n"),
      ": workload.kind is \"own\" and no function is called; give at least one [[function]] a rate_per_s above 0");
  EXPECT_EQ(
      error("[[function]]\nwarm_s = 1\nrate_per_s = 2\n"),
      ": function.rate_per_s of f1 is 2, but workload.kind is not \"own\", so that nothing reads it; write [workload] "
      "kind = \"own\"");
  EXPECT_EQ(read_scenario("/", scenario("zipf")).error().message,
            "scenario / is a folder; name the file in it, for example //scenario.toml");
}

TEST_F(ScenarioFile, SettingsDifferFromThePresetWhereverThatIsWritten) {
  const auto read_back = read("preset = \"paper\"\n[memory]\neviction = \"cost\"\n");
  ASSERT_TRUE(read_back) << read_back.error().message;
  EXPECT_EQ(read_back->policy, "mqfq-sticky");
  EXPECT_EQ(read_back->core.eviction, EvictionKind::kCost);
}

TEST_F(ScenarioFile, FunctionsMaySayWhenTheyAreCalled) {
  const auto read_back = read(R"(
noise = 0
duration_s = 100
[workload]
kind = "own"
[[function]]
name = "steady"
warm_s = 0.1
rate_per_s = 2
rate_cv = 0
[[function]]
name = "once"
warm_s = 0.1
rate_per_s = 1
calls = 3
burst = 3
begin_s = 50
copies = 2
)");
  ASSERT_TRUE(read_back) << read_back.error().message;
  const RunResult result = run(*read_back);
  EXPECT_NEAR(static_cast<double>(result.functions[0].arrived), 200, 1);
  EXPECT_EQ(result.functions[1].arrived, 3u);
  EXPECT_EQ(result.functions[2].arrived, 3u);
}

}  // namespace
}  // namespace fairlead::sim
