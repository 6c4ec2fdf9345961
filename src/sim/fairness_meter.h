// How unfair a run was: the service gap of MQFQ-Sticky (section 4.1). For two flows i and j, over every interval in which
// both stay backlogged, |S_i / w_i - S_j / w_j|, where S is the GPU service received in the interval; reported is the
// largest. A flow is backlogged while it contends (FlowView): it has work, and an instance for it. What it was passed by, in
// slots that it could not use, counts as if it had been served.
//
// Example: i and j backlogged over [0 s, 60 s], S_i / w_i - S_j / w_j rises to 9 s at 20 s and falls to -4 s at 50 s: the
// gap is 13 s, that of the interval [20 s, 50 s].
//
// Service is accounted as for the gap of windows (service_received.h). That gap is what people are shown and O(1) per event;
// this one is what a bound is stated for, and O(flows^2) per event: for tests.
//
// Threads: not thread-safe. Determinism: ordered containers; no decision depends on it.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "decide/core/core.h"
#include "sim/service_received.h"

namespace fairlead::sim {

class FairnessMeter {
 public:
  // Of the flows 1, 2, ... with these weights.
  FairnessMeter(const Core& core, std::vector<double> weights)
      : core_(core), weights_(std::move(weights)), received_(weights_.size()) {}

  void on_arrival(InvocationId invocation, FlowId flow) { flow_of_[invocation] = flow; }
  void on_action(Instant now, const Action& action);

  // Call after every event: between two events the gap changes linearly, so its extremes are at events.
  void sample(Instant now);

  Duration gap(FlowId i, FlowId j) const;  // 0 for two that were never backlogged together. REQUIRES: i < j

 private:
  struct Range {
    bool open = false;  // both backlogged since `least` and `most` were reset
    Duration least{0}, most{0};
    Duration gap{0};
  };

  static FlowId flow(std::size_t index) { return FlowId(index + 1); }
  std::vector<Duration> normalised_services(Instant now);  // as weights_

  const Core& core_;
  const std::vector<double> weights_;
  ServiceReceived received_;
  std::map<InvocationId, FlowId> flow_of_;  // until it completes
  std::set<InvocationId> running_;
  std::map<std::pair<FlowId, FlowId>, Range> ranges_;
};

}  // namespace fairlead::sim
