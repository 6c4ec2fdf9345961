// How many invocations a second does one core simulate, and does a longer trace take more memory? Targets: 1,000,000 a
// second with 24 functions, 300,000 with 10,000; memory the same whatever the length.
//
// The scenario is the built-in "zipf": one V100, functions of the paper's Table 1 with 1.5 GiB each, of which ten fit at a
// time, so memory moves all along. A pool of 12 evicts instances, one of 32 keeps those of all 24. "node" and "paper" are the
// presets of preset.h.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdint>
#include <string>

#include "base/check.h"
#include "sim/preset.h"
#include "sim/simulation.h"

namespace fairlead::sim {
namespace {

constexpr Duration kTrace = std::chrono::hours(24 * 3);  // about 100,000 invocations of 24 functions

Scenario zipf(Preset setting, std::size_t functions, std::size_t pool, Duration duration) {
  Scenario scenario = *built_in_scenario("zipf");
  apply(setting, scenario);
  scenario.functions = copies_of_table1(functions);
  scenario.core.instances_per_gpu = pool;
  scenario.duration = duration;
  FL_CHECK(validate(scenario));
  return scenario;
}

void simulate(benchmark::State& state, const Scenario& scenario) {
  std::uint64_t invocations = 0;
  for (auto _ : state) {
    invocations += Simulation(scenario, 1, make_arrivals(scenario, 1)).run().arrived();
  }
  state.counters["invocations"] =
      benchmark::Counter(static_cast<double>(invocations), benchmark::Counter::kAvgIterations);
  state.counters["per_second"] = benchmark::Counter(static_cast<double>(invocations), benchmark::Counter::kIsRate);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  state.counters["peak_mib"] = static_cast<double>(used.ru_maxrss) / 1024;  // of the process: one benchmark a run
}

void add(const std::string& name, const Scenario& scenario) {
  benchmark::RegisterBenchmark(name.c_str(), [scenario](benchmark::State& state) {
    simulate(state, scenario);
  })->Unit(benchmark::kMillisecond);
}

const bool registered = [] {
  for (const Preset setting : {Preset::kNode, Preset::kPaper}) {
    const std::string name = setting == Preset::kNode ? "node" : "paper";
    for (const std::size_t pool : {12, 32}) {
      add("functions_24/" + name + "/pool_" + std::to_string(pool), zipf(setting, 24, pool, kTrace));
    }
    add("functions_10000/" + name + "/pool_32", zipf(setting, 10'000, 32, kTrace));
  }
  for (const int times : {1, 8}) {
    add("trace_length/" + std::to_string(times), zipf(Preset::kNode, 24, 32, kTrace * times));
  }
  return true;
}();

}  // namespace
}  // namespace fairlead::sim
