// How much GPU service each flow has received: it counts as it is received, not when an invocation ends. The two gaps, of
// windows (service_gaps.h) and of any interval (fairness_meter.h), are read off this one account.
//
// Example: two invocations of a flow run from 0 s, one ends at 3 s: at 5 s the flow has received 8 s.
//
// Threads: not thread-safe. Cost: O(1).
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"

namespace fairlead::sim {

class ServiceReceived {
 public:
  explicit ServiceReceived(std::size_t flows) : flows_(flows) {}

  // Times do not fall.
  void started(Instant now, std::size_t flow) {
    at(now, flow);
    ++flows_[flow].running;
  }
  void ended(Instant now, std::size_t flow) {
    at(now, flow);
    --flows_[flow].running;
  }
  // Until `now`, in all.
  Duration at(Instant now, std::size_t flow) {
    Flow& f = flows_[flow];
    f.received += (now - f.since) * static_cast<Duration::rep>(f.running);
    f.since = now;
    return f.received;
  }

 private:
  struct Flow {
    std::size_t running = 0;
    Instant since{};  // accounted until then
    Duration received{0};
  };
  std::vector<Flow> flows_;
};

}  // namespace fairlead::sim
