#include "sim/cluster/experiments.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace fairlead::sim {
namespace {

using Rows = std::vector<ClusterRow>;

ClusterRunOptions base(const ClusterOptions& options) {
  return {.nodes = options.nodes,
          .gpus = options.gpus,
          .load = options.load,
          .seconds = options.seconds,
          .warm_up = options.warm_up,
          .seed = options.seed,
          .threads = options.threads};
}

std::string workload_of(const ClusterOptions& options) {
  return fmt::format("{} x {}, load {}", options.nodes, options.gpus, options.load);
}

ClusterRow row_of(std::string experiment, std::string contestant, std::string workload, const ClusterRunResult& found) {
  return {.experiment = std::move(experiment),
          .contestant = std::move(contestant),
          .workload = std::move(workload),
          .numbers = {{"mean_s", found.mean_s},
                      {"p50_s", found.p50_s},
                      {"p99_s", found.p99_s},
                      {"cold_percent", found.cold_percent},
                      {"worst_of_mean", found.worst_load},
                      {"homes_away", found.homes_away},
                      {"calls", static_cast<double>(found.calls)},
                      {"refused", static_cast<double>(found.refused)}},
          .state_hash = found.state_hash};
}

Rows routing(const ClusterOptions& options) {
  Rows rows;
  const auto add = [&](const char* name, const ClusterRunOptions& run) {
    rows.push_back(row_of("routing", name, workload_of(options), run_cluster(run)));
  };
  ClusterRunOptions run = base(options);
  add("bounded, warm first", run);
  run.warm_search = 1;
  add("bounded", run);
  run.is_exact = true;
  add("bounded, exact", run);
  run.warm_search = 16;
  add("bounded, warm first, exact", run);
  run = base(options);
  run.routing = ClusterRouting::kTwoChoice;
  add("two-choice", run);
  run.routing = ClusterRouting::kChRlu;
  for (const double capacity : {0.4, 0.6, 0.8, 1.0, 1.2, 2.4}) {
    run.own_capacity = capacity;
    add(fmt::format("ch-rlu, {} s", capacity).c_str(), run);
  }
  return rows;
}

Rows bounds(const ClusterOptions& options) {
  Rows rows;
  for (const double c : {1.1, 1.25, 1.5, 2.0, 3.0}) {
    for (const std::size_t search : {1, 16}) {
      ClusterRunOptions run = base(options);
      run.bound.c = c;
      run.warm_search = search;
      rows.push_back(row_of("bounds", fmt::format("c {}, {}", c, search == 1 ? "first" : "warm of 16"),
                            workload_of(options), run_cluster(run)));
    }
  }
  return rows;
}

Rows failures(const ClusterOptions& options) {
  Rows rows;
  const auto add = [&](const char* name, const ClusterRunOptions& run) {
    const ClusterRunResult found = run_cluster(run);
    ClusterRow row = row_of("failures", name, workload_of(options), found);
    row.numbers.insert(row.numbers.end(), {{"resent", static_cast<double>(found.resent)},
                                           {"lost", static_cast<double>(found.lost)},
                                           {"back_s", found.back_s}});
    rows.push_back(std::move(row));
  };
  const ClusterRunOptions none = base(options);
  add("nothing", none);
  ClusterRunOptions run = none;
  run.lost_nodes = 1;
  add("a node lost, back after 20 s", run);
  run.lost_nodes = std::max<std::size_t>(1, options.nodes / 20);
  add("a twentieth lost, back after 20 s", run);
  run = none;
  run.drained_nodes = std::max<std::size_t>(1, options.nodes / 20);
  add("a twentieth drains", run);
  run = none;
  run.hot_factor = 1000;
  add("a function 1000 times as often for 10 s", run);
  run = none;
  run.gossip_loss = 0.1;
  add("a tenth of reports lost", run);
  run.gossip_loss = 0.3;
  add("three tenths of reports lost", run);
  run = none;
  run.skew = std::chrono::hours(1);
  add("clocks two hours apart", run);
  run = none;
  run.liars = 1;
  add("a node says it has nothing to do", run);
  return rows;
}

Rows fairness(const ClusterOptions& options) {
  Rows rows;
  struct Case {
    const char* name;
    std::size_t nodes;
    bool has_clocks;
  };
  for (const Case& one :
       {Case{"one node", 1, false}, {"16 nodes, each for itself", 16, false}, {"16 nodes, clocks", 16, true}}) {
    ClusterRunOptions run = base(options);
    run.nodes = one.nodes;
    run.has_tenant_clocks = one.has_clocks;
    run.seconds = 150;
    // One floods through many functions, one has a few on every node, two have functions on a part of the nodes only.
    run.tenant_loads = {2, 0.8, 0.8, 0.8};
    run.tenant_functions = {16, 8, 4, 3};
    const ClusterRunResult found = run_cluster(run);
    rows.push_back({.experiment = "fairness",
                    .contestant = one.name,
                    .workload = "flood and three",
                    .numbers = {{"worst_gap_s", found.worst_gap_s},
                                {"mean_gap_s", found.mean_gap_s},
                                {"worst_gap_part", found.worst_gap_part}},
                    .state_hash = found.state_hash});
  }
  return rows;
}

Rows speed(const ClusterOptions& options) {
  Rows rows;
  const auto add = [&](std::string name, const ClusterRunOptions& run) {
    const ClusterRunResult found = run_cluster(run);
    rows.push_back(
        {.experiment = "speed",
         .contestant = std::move(name),
         .workload = workload_of(options),
         .numbers = {{"calls", static_cast<double>(found.all_calls)},
                     {"cpu_s", found.cpu_s},
                     {"calls_per_cpu_s", static_cast<double>(found.all_calls) / std::max(1e-9, found.cpu_s)}},
         .state_hash = found.state_hash});
  };
  ClusterRunOptions run = base(options);
  run.nodes = 1;
  run.gateways = 1;
  run.seconds = options.seconds * static_cast<double>(options.nodes) / 20;
  add("one node", run);
  run = base(options);
  for (const std::size_t threads : {1, 2, 3}) {
    run.threads = threads;
    add(fmt::format("{} nodes, {} thread(s)", options.nodes, threads), run);
  }
  return rows;
}

struct Experiment {
  std::string_view name;
  Rows (*run)(const ClusterOptions&);
};
constexpr Experiment kExperiments[] = {
    {"routing", routing}, {"bounds", bounds}, {"failures", failures}, {"fairness", fairness}, {"speed", speed}};

}  // namespace

std::vector<std::string_view> cluster_experiments() {
  std::vector<std::string_view> names;
  for (const Experiment& one : kExperiments) names.push_back(one.name);
  return names;
}

Result<std::vector<ClusterRow>> run_cluster_experiment(std::string_view experiment, const ClusterOptions& options) {
  if (options.nodes < 2 || options.nodes > 10'000)
    return fail(Errc::kInvalidArgument, "nodes is {}, it must be 2 to 10000", options.nodes);
  for (const Experiment& one : kExperiments) {
    if (one.name == experiment) return one.run(options);
  }
  return fail(Errc::kInvalidArgument, "experiment is \"{}\", it must be one of {}", experiment,
              fmt::join(cluster_experiments(), ", "));
}

}  // namespace fairlead::sim
