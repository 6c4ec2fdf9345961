#include "sim/attack/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "decide/queueing/window.h"
#include "sim/preset.h"
#include "sim/simulation.h"

namespace fairlead::sim {
namespace {

RunResult run_seeds(const Scenario& scenario) {
  RunResult total;
  for (std::size_t i = 0; i < scenario.seeds.size(); ++i) {
    const std::uint64_t seed = scenario.seeds[i];
    RunResult run = Simulation(scenario, seed, make_arrivals(scenario, seed)).run();
    if (i == 0) {
      total = std::move(run);
    } else {
      total.merge(run);
    }
  }
  return total;
}

double quotient(double ours, double theirs) {
  return ours > 0 && theirs > 0 ? ours / theirs : 1;
}

std::vector<LateFlow> late_flows(const Scenario& workload, const Comparison& comparison) {
  std::vector<LateFlow> late;
  const RunResult& fcfs = comparison.rival(Rival::kFcfs);
  for (std::size_t f = 0; f < workload.functions.size(); ++f) {
    if (!comparison.within_share[f]) continue;
    const Duration waited = comparison.node.functions[f].greatest_wait;
    Duration allowed = from_seconds(kBounds.wait * to_seconds(fcfs.functions[f].greatest_wait));
    if (const auto bound = waiting_bound(workload, f)) allowed = std::max(allowed, *bound);
    if (waited > allowed) late.push_back({workload.functions[f].name, waited, allowed});
  }
  return late;
}

}  // namespace

const char* name_of(Rival rival) {
  return rival == Rival::kFcfs ? "fcfs" : "paper";
}

const char* name_of(Measure measure) {
  switch (measure) {
    case Measure::kMean: return "mean";
    case Measure::kP99: return "p99";
    case Measure::kWorstFlow: return "worst-flow";
  }
  return "unknown";
}

double Comparison::ratio(Measure measure, Rival which) const {
  const RunResult& other = rival(which);
  switch (measure) {
    case Measure::kMean: return quotient(node.latency.mean_seconds(), other.latency.mean_seconds());
    case Measure::kP99:
      return quotient(to_seconds(node.latency.percentile(0.99)), to_seconds(other.latency.percentile(0.99)));
    case Measure::kWorstFlow: break;
  }
  double worst = 1;
  for (std::size_t f = 0; f < node.functions.size(); ++f) {
    if (!within_share[f]) continue;
    worst =
        std::max(worst, quotient(node.functions[f].latency.mean_seconds(), other.functions[f].latency.mean_seconds()));
  }
  return worst;
}

double Comparison::worst_ratio(Measure measure) const {
  double worst = 0;
  for (const Rival which : kRivals) worst = std::max(worst, ratio(measure, which));
  return worst;
}

Comparison compare(const Scenario& workload) {
  Comparison comparison;
  Scenario scenario = workload;
  apply(Preset::kNode, scenario);
  comparison.node = run_seeds(scenario);
  scenario.policy = "fcfs";
  comparison.rivals[static_cast<std::size_t>(Rival::kFcfs)] = run_seeds(scenario);
  apply(Preset::kPaper, scenario);
  comparison.rivals[static_cast<std::size_t>(Rival::kPaper)] = run_seeds(scenario);
  comparison.within_share = within_share(workload, comparison.node);
  comparison.late = late_flows(workload, comparison);
  return comparison;
}

std::vector<char> within_share(const Scenario& workload, const RunResult& run) {
  const double weights =
      std::accumulate(workload.functions.begin(), workload.functions.end(), 0.0,
                      [](double sum, const FunctionModel& function) { return sum + function.weight; });
  const double seconds = to_seconds(workload.duration) * static_cast<double>(workload.seeds.size());
  std::vector<char> within;
  for (std::size_t f = 0; f < workload.functions.size(); ++f) {
    const FunctionModel& function = workload.functions[f];
    const double asked = static_cast<double>(run.functions[f].arrived) * to_seconds(function.warm);
    within.push_back(asked <= seconds * static_cast<double>(workload.devices) * function.weight / weights);
  }
  return within;
}

// With noise, and beside starts, a run takes at most twice what it does alone. Seconds throughout.
std::optional<Duration> waiting_bound(const Scenario& workload, std::size_t function) {
  constexpr double kLongest = 2;
  Scenario node = workload;
  apply(Preset::kNode, node);
  const double window = to_seconds(node.policy_options.get(kOverRun)),
               slots = static_cast<double>(node.core.slots_per_gpu);
  const auto step = [&](const FunctionModel& f) {
    return slots * std::max({kLongest * to_seconds(f.warm), window / 10, 0.001}) / f.weight;
  };
  double throttled = 0, in_window = 0, claimed = 0, longest = 0, longest_start = 0;
  for (std::size_t i = 0; i < workload.functions.size(); ++i) {
    const FunctionModel& f = workload.functions[i];
    longest = std::max(longest, kLongest * to_seconds(f.warm));
    longest_start = std::max(longest_start, kLongest * to_seconds(f.cold_start));
    claimed += f.weight * (window + step(f));
    if (i == function) continue;
    throttled += f.weight * (window + step(f) + step(workload.functions[function])) / slots;
    in_window += f.weight * (2 * window + step(f)) / slots;
  }
  throttled += longest;
  in_window += longest;
  const double others = static_cast<double>(workload.functions.size() - 1);
  const std::size_t starts = std::min(node.core.starts_per_gpu, node.core.slots_per_gpu);  // in the place of others
  const double turns = std::ceil(others / static_cast<double>(starts)) + 2;
  const double start = throttled + window + turns * (longest_start + in_window);
  const double claims = 8 * window + claimed + (others + 1) * 2 * (longest + longest_start);
  return from_seconds(2 * (start + throttled + in_window) + claims);
}

std::vector<std::string> beyond_bounds(const Comparison& comparison) {
  std::vector<std::string> beyond;
  for (const auto& [measure, bound] :
       {std::pair(Measure::kMean, kBounds.mean), std::pair(Measure::kP99, kBounds.p99)}) {
    const double ratio = comparison.worst_ratio(measure);
    if (ratio <= bound) continue;
    beyond.push_back(
        fmt::format("{} is {:.2f} x the better of fcfs and paper, the bound is {} x", name_of(measure), ratio, bound));
  }
  for (const LateFlow& flow : comparison.late) {
    beyond.push_back(fmt::format("{} waited {:.3f} s at the head of its queue, the bound is {:.3f} s", flow.name,
                                 to_seconds(flow.waited), to_seconds(flow.allowed)));
  }
  return beyond;
}

}  // namespace fairlead::sim
