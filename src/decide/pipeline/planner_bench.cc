// How long a plan takes: one instance and a whole node, 5 components, 48 free slices of three types.
#include <benchmark/benchmark.h>

#include "base/rng.h"
#include "decide/pipeline/dag_testing.h"
#include "decide/pipeline/planner.h"

namespace fairlead {
namespace {

PipelineModel five_components(std::uint64_t seed) {
  Rng rng(seed);
  Dag dag = dag_of_nothing();
  for (int i = 0; i < 5; ++i) {
    const std::string before = i == 0 ? "input" : "c" + std::to_string(i - 1);
    const double alone = 40 + 100 * rng.uniform(), fixed = 0.1 + 0.3 * rng.uniform();
    const auto on = [&](double slices) { return static_cast<int>(alone * (fixed + (1 - fixed) / slices)); };
    dag.components.push_back(component(dag, "c" + std::to_string(i), {before.c_str()}, {on(1), on(2), on(4)},
                                       mib(3072 + static_cast<std::int64_t>(rng.below(5120)))));
  }
  end_with(dag, "c4");
  return PipelineModel(std::move(dag),
                       {{"1g", 1, mib(9856), ""}, {"2g", 2, mib(19968), ""}, {"4g", 4, mib(40192), ""}});
}

void plan_one(benchmark::State& state, const char* name) {
  const Planner& planner = **planner_named(name);
  const PipelineModel model = five_components(1);
  const PlanRequest request{.free = {16, 16, 16}, .objective = *model.alone_on_least() * 3 / 2};
  for (auto _ : state) benchmark::DoNotOptimize(planner.one(model, request));
}
void fill_node(benchmark::State& state, const char* name, std::uint64_t steps) {
  const Planner& planner = **planner_named(name);
  const PipelineModel model = five_components(1);
  const PlanRequest request{.free = {16, 16, 16}, .objective = *model.alone_on_least() * 3 / 2, .steps = steps};
  double rate = 0;
  for (auto _ : state) rate = planner.fill(model, request).rate_per_s;
  PlanRequest longer = request;
  longer.steps = 4'000'000'000;
  state.counters["of_exact"] = rate / (*planner_named("exact"))->fill(model, longer).rate_per_s;
}

BENCHMARK_CAPTURE(plan_one, cv, "cv")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan_one, need, "need")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan_one, exact, "exact")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(fill_node, exact_1M, "exact", 1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fill_node, exact_4M, "exact", 4'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fill_node, replicas_1M, "replicas", 1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fill_node, replicas_4M, "replicas", 4'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fairlead
