// MQFQ (Hedayati et al. 2019) on functions: the window of MQFQ-Sticky, but any eligible flow may be next, at random. What
// preferential dispatch (section 4.3) adds is measured against this.
//
// Determinism: the same seed and calls give the same choices.
#pragma once

#include "base/rng.h"
#include "queueing/mqfq_sticky.h"

namespace fairlead {

class Mqfq final : public MqfqSticky {
 public:
  explicit Mqfq(const PolicyOptions& options) : MqfqSticky(options), rng_(options.seed) {}
  std::string_view name() const override { return "mqfq"; }

 protected:
  std::optional<Row> pick(const Placeable& placeable) override {
    for (int tries = 0; tries < kTries && !preferred_.empty(); ++tries) {
      const Row row = preferred_.at(rng_.below(preferred_.size()));
      if (placeable.can_run(flows_[row].id)) return row;
    }
    return MqfqSticky::pick(placeable);
  }

 private:
  static constexpr int kTries = 8;  // then whichever can run
  Rng rng_;
};

}  // namespace fairlead
