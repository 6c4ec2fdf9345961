// The gap between tenants of a cluster: in windows of 30 s, the most service that a tenant got less the least, of those that waited somewhere at
// all times. The first window begins with the end of the warm-up.
//
// Example: three tenants wait, and get 100, 120 and 80 GPU seconds: a gap of 40 s, which is 0.4 of a fair part.
#pragma once

#include <vector>

#include "sim/cluster/cluster_run.h"

namespace fairlead::sim {

class TenantGaps {
 public:
  TenantGaps(std::size_t tenants, Instant measured_from);

  // At a gossip tick, by tenant: GPU seconds since the beginning, over all nodes; whether something of it waits.
  void observe(Instant now, std::vector<double> served_s, const std::vector<bool>& waits);
  void add_to(ClusterRunResult& result) const;

 private:
  void end_window();

  const Instant measured_from_;
  Instant window_end_;
  std::vector<double> served_s_, before_s_;
  std::vector<bool> waited_all_;
  double worst_s_ = 0, worst_part_ = 0, sum_s_ = 0, windows_ = 0;
};

}  // namespace fairlead::sim
