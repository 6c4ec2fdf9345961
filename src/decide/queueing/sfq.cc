// SFQ: start-time fair queueing over functions (Goyal, Vin, Cheng 1996), which is MQFQ with no over-run. The least served
// flow is always next; nothing is served twice in a row while another waits, so warm instances and device memory are
// given up most often. The paper measures what that costs: 2.5 times the latency.
#include "decide/queueing/mqfq_sticky.h"

namespace fairlead {
namespace {

class Sfq final : public MqfqSticky {
 public:
  Sfq(FlowTable& flows, const PolicyOptions& options) : MqfqSticky(flows, without_over_run(options)) {}

 private:
  static PolicyOptions without_over_run(PolicyOptions options) {
    return options.set(kOverRun, Duration(0)).set(kOverRunServices, 0);
  }
};

}  // namespace

constinit const Policy sfq_policy{.name = "sfq",
                                  .next_is = "the least served: a window of 0",
                                  .make = make_order<Sfq>,
                                  .parameters = {&kFixedCharge}};

}  // namespace fairlead
