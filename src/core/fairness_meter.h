// How unfair a run was: the service gap of MQFQ-Sticky (section 4.1). For two flows i and j, over every interval in which
// both stay backlogged, |S_i / w_i - S_j / w_j|, where S is the GPU service received in the interval; reported is the
// largest. Service counts as it is received, not when an invocation ends. A flow is backlogged while it contends
// (FlowView): it has work, and an instance for it. What it was passed by, in tokens that it could not use, counts as if it
// had been served.
//
// Example: i and j backlogged over [0 s, 60 s], S_i / w_i - S_j / w_j rises to 9 s at 20 s and falls to -4 s at 50 s: the
// gap is 13 s, that of the interval [20 s, 50 s].
//
// Threads: not thread-safe. Determinism: ordered containers; no decision depends on it.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/core.h"

namespace fairlead {

class FairnessMeter {
 public:
  struct FlowOfInterest {
    FlowId flow;
    double weight = 1.0;
  };

  // REQUIRES: no flow twice.
  FairnessMeter(const Core& core, std::vector<FlowOfInterest> flows) : core_(core), flows_(std::move(flows)) {}

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

  std::vector<Duration> normalised_services(Instant now) const;  // as flows_

  const Core& core_;
  const std::vector<FlowOfInterest> flows_;
  std::map<InvocationId, FlowId> flow_of_;
  std::map<InvocationId, Instant> running_;
  std::map<FlowId, Duration> served_;
  std::map<std::pair<FlowId, FlowId>, Range> ranges_;
};

}  // namespace fairlead
