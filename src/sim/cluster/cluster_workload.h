// The calls of a simulated cluster: functions by Zipf's law, arrivals as a Poisson process, one function that may be hot for 10 s.
//
// Rates are such that each tenant offers its load. Run times are spread by a factor of about 3 either way, and each call's by 30 %; the
// busiest functions are not the longest.
//
// Example: 1,250 nodes of 8 GPUs at a load of 0.6 are 6,000 GPU seconds a second, over 10,000 functions of which the first has 4 % of the calls.
//
// Determinism: of options.seed alone, so that all contestants get the same calls.
#pragma once

#include <optional>
#include <vector>

#include "base/rng.h"
#include "sim/cluster/cluster_run.h"
#include "sim/cluster/node_run.h"

namespace fairlead::sim {

class ClusterWorkload {
 public:
  // `gateways`: how many take calls. `measured_from`: the end of the warm-up.
  ClusterWorkload(const ClusterRunOptions& options, std::size_t gateways, Instant measured_from);

  const std::vector<ClusterFunction>& functions() const { return functions_; }
  // The next call, if it arrives before `end`.
  std::optional<ClusterCall> next(Instant end);

 private:
  void add_tenant(const ClusterRunOptions& options, std::size_t tenant, Rng& rng);
  std::size_t function_at(double part) const;
  double heat(Instant now) const;  // by how much more is called, of all calls

  const std::size_t gateways_;
  const Instant hot_from_, hot_until_;
  std::vector<ClusterFunction> functions_;
  std::vector<double> cumulative_;
  double rate_ = 0;
  std::size_t hot_function_ = 0;
  double hot_extra_ = 0;
  Rng rng_;
  Instant next_arrival_;
};

}  // namespace fairlead::sim
