// One question whose answer is not remembered: random shares, all different or of the profiler's grid, of which about as many as fill the
// device. The item count is questions; "iterations" is of the simplex method. Budget: 100 us for 8 instances, 1 ms of processor time for 48.
#include <benchmark/benchmark.h>

#include "base/rng.h"
#include "decide/pacing/concurrent_sets.h"

namespace fairlead {
namespace {

std::vector<QuotaRow> random_rows(Rng& rng, std::int64_t instances) {
  std::vector<QuotaRow> rows;
  const auto most =
      static_cast<std::uint64_t>(std::min<std::int64_t>(100, 800 / instances));  // together about a device
  for (std::int64_t i = 0; i < instances; ++i) {
    rows.push_back({1 + static_cast<int>(rng.below(50)), 1 + static_cast<int>(rng.below(most)), 1});
  }
  return rows;
}

void exact_fit(benchmark::State& state) {
  Rng rng(1);
  std::vector<std::vector<QuotaRow>> questions;
  for (int i = 0; i < 64; ++i) questions.push_back(random_rows(rng, state.range(0)));
  std::size_t next = 0;
  double iterations = 0;
  for (auto _ : state) {
    const LeastTime found = least_time(questions[next++ % questions.size()], 0);  // to the end: the longest case
    iterations += found.iterations;
    benchmark::DoNotOptimize(found.percent);
  }
  state.counters["iterations"] = benchmark::Counter(iterations, benchmark::Counter::kAvgIterations);
}
BENCHMARK(exact_fit)->Arg(8)->Arg(20)->Arg(48)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fairlead
