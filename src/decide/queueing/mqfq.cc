// MQFQ (Hedayati et al. 2019) on functions: the window of MQFQ-Sticky, but any eligible flow may be next, at random. What
// preferential dispatch (section 4.3) adds is measured against this.
//
// Determinism: the same seed and calls give the same choices.
#include "base/rng.h"
#include "decide/queueing/mqfq_sticky.h"

namespace fairlead {
namespace {

class Mqfq final : public MqfqSticky {
 public:
  Mqfq(FlowTable& flows, const PolicyOptions& options) : MqfqSticky(flows, options), rng_(options.seed) {}

 protected:
  std::optional<Row> first_preferred(const Placeable& placeable) override {
    for (int tries = 0; tries < kTries && !preferred_.empty(); ++tries) {
      const Row row = preferred_.at(rng_.below(preferred_.size()));
      if (placeable.can_run(flows_[row].id)) return row;
    }
    return MqfqSticky::first_preferred(placeable);
  }

 private:
  static constexpr int kTries = 8;  // then whichever can run
  Rng rng_;
};

}  // namespace

constinit const Policy mqfq_policy{.name = "mqfq",
                                   .next_is = "within the window: any, at random",
                                   .make = make_order<Mqfq>,
                                   .parameters = {&kOverRun, &kOverRunServices, &kFixedCharge}};

}  // namespace fairlead
