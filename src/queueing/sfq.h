// SFQ: start-time fair queueing over functions (Goyal, Vin, Cheng 1996), which is MQFQ with no over-run. The least served
// flow is always next; nothing is served twice in a row while another waits, so warm instances and device memory are
// given up most often. The paper measures what that costs: 2.5 times the latency.
#pragma once

#include "queueing/mqfq_sticky.h"

namespace fairlead {

class Sfq final : public MqfqSticky {
 public:
  explicit Sfq(PolicyOptions options) : MqfqSticky(without_over_run(options)) {}
  std::string_view name() const override { return "sfq"; }

 private:
  static PolicyOptions without_over_run(PolicyOptions options) {
    options.over_run = Duration(0);
    options.over_run_services = 0;
    return options;
  }
};

}  // namespace fairlead
