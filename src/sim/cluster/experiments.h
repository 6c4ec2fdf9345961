// What routings of a cluster are compared on, each as one row per contestant.
//
//   routing    ours, two-choice, CH-RLU at its best capacity, bounded hashing with exact information, at one load
//   bounds     ours by c and by how far a warm node is searched
//   failures   ours while nodes are lost and come back, drain, a function gets hot, reports are lost, clocks differ, a node lies
//   fairness   tenants' gap on one node, and over 16 with and without clocks of the cluster
//   speed      calls per CPU second beside one node's; the hash by threads
//
// Threads: see ClusterOptions::threads. Determinism: of the options, but for the CPU seconds of `speed`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sim/cluster/cluster_run.h"

namespace fairlead::sim {

struct ClusterOptions {
  std::size_t nodes = 1250, gpus = 8;
  double load = 0.6;
  double seconds = 60, warm_up = 20;
  std::uint64_t seed = 1;
  std::size_t threads = 1;
};

struct ClusterRow {
  std::string experiment, contestant, workload;
  std::vector<std::pair<std::string, double>> numbers;
  std::uint64_t state_hash = 0;
};

std::vector<std::string_view> cluster_experiments();
// kInvalidArgument names what is not known.
Result<std::vector<ClusterRow>> run_cluster_experiment(std::string_view experiment, const ClusterOptions& options);

}  // namespace fairlead::sim
