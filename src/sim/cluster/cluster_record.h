// What came of a simulated cluster's calls: latencies, in all and second by second, homes, loads; and how long it took until a loss was over.
//
// Calls that arrived during the warm-up do not count.
#pragma once

#include <vector>

#include "sim/cluster/cluster_run.h"
#include "sim/cluster/node_run.h"
#include "sim/histogram.h"

namespace fairlead::sim {

class ClusterRecord {
 public:
  explicit ClusterRecord(Instant measured_from) : measured_from_(measured_from) {}

  void arrived() { ++counted_.all_calls; }
  void sent(std::size_t place);  // in the function's order of homes
  void refused() { ++counted_.refused; }
  void resent() { ++counted_.resent; }
  void answered(const ClusterAnswer& answer);
  // At a gossip tick: backlogs of the nodes that are there.
  void loads(double most_s, double total_s, std::size_t nodes);

  // Without gaps, what was lost, processor time and hash. `seconds`: of the run, without its warm-up.
  ClusterRunResult result(double seconds) const;

 private:
  double seconds_until_back(double seconds) const;

  const Instant measured_from_;
  ClusterRunResult counted_;
  Histogram latency_;
  std::vector<Histogram> by_second_;
  double cold_ = 0, places_ = 0, routed_ = 0, worst_sum_ = 0, ticks_ = 0;
};

}  // namespace fairlead::sim
