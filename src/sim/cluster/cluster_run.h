// A simulated cluster: calls come to gateways, gateways choose nodes by what was gossiped, nodes run them.
//
//   arrivals of one gossip period ──> gateways (decide/cluster, each with its own view) ──> nodes, in parallel on T threads, to the end of
//   the period ──> answers and reports, node by node ──> the gateways' views ──> the next period
//
// A node hears nothing of another between two gossip ticks, so running nodes side by side is exact: any number of threads gives the same
// actions, and the same hash.
//
// Not modelled: the network's time, a gateway's own time, memory of devices beyond the number of instances, deployment. A node that is lost
// answers nothing; its calls are sent again by their gateways when those suspect it.
//
// Source of the conditions: functions by Zipf, starts of 2.5 s, 8 GPUs with 2 slots each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "decide/cluster/members.h"
#include "decide/cluster/peer_loads.h"
#include "decide/cluster/tenant_clocks.h"

namespace fairlead::sim {

enum class ClusterRouting {
  kBounded,    // decide/cluster/home_choice.h
  kTwoChoice,  // the better of a function's first two homes
  kChRlu,      // the first home below a load of its own capacity; loads are updated at random with each call
  kLeast,      // the least loaded of two nodes at random, wherever the function is warm
};

struct ClusterRunOptions {
  std::size_t nodes = 1250, gpus = 8;
  std::size_t functions_per_node = 8;
  double exponent = 0.9;  // of Zipf
  double load = 0.6;      // GPU seconds offered, per GPU and second
  double seconds = 60, warm_up = 20;
  std::uint64_t seed = 1;
  std::size_t threads = 1;
  std::size_t gateways = 32;
  std::size_t instances_per_gpu = 8;

  ClusterRouting routing = ClusterRouting::kBounded;
  BoundSettings bound;
  std::size_t warm_search = 16;
  double own_capacity = 2;  // of kChRlu: seconds of backlog per token, from which the next home is asked
  MemberTimes times;
  bool is_exact = false;  // information of 2 ms, one gateway

  // What goes wrong, where above 0. Times are from the end of the warm-up.
  std::size_t lost_nodes = 0;  // at 10 s; back at 30 s
  std::size_t drained_nodes = 0;
  double gossip_loss = 0;  // part of reports
  Duration skew{0};        // of nodes' clocks, to either side
  double hot_factor = 1;   // one function of the middle, called so many times as often for 10 s
  std::size_t liars = 0;   // report nothing to do

  std::vector<double> tenant_loads;      // not empty: as many tenants, with these loads in place of `load`
  std::vector<double> tenant_functions;  // per node, of each
  bool has_tenant_clocks = false;
};

struct ClusterRunResult {
  std::uint64_t calls = 0, refused = 0, resent = 0, lost = 0;  // of calls after the warm-up
  double mean_s = 0, p50_s = 0, p99_s = 0, cold_percent = 0;
  double worst_load = 0;  // the most loaded node's backlog over the mean, in the mean over ticks
  double homes_away = 0;  // place in the function's order, mean
  double back_s = 0;      // until p99 of a second is within 1.5 of before the loss, and stays; -1: never
  double worst_gap_s = 0, mean_gap_s = 0;  // of tenants: most - least service per weight in windows of 30 s
  double worst_gap_part = 0;               // the same, of a fair part
  double cpu_s = 0;                        // of the process
  std::uint64_t all_calls = 0;
  std::uint64_t state_hash = 0;
};

// REQUIRES: options are within validate()'s bounds.
ClusterRunResult run_cluster(const ClusterRunOptions& options);

}  // namespace fairlead::sim
