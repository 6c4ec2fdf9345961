// Shared by the tests of the decision layers.
#pragma once

#include <cstdlib>
#include <set>

#include "queueing/policy.h"

namespace fairlead::testing {

// Property tests try the same cases in every run, unless the caller's RC_PARAMS says otherwise ("seed=7 max_success=9").
inline const int kFixedSeed = setenv("RC_PARAMS", "seed=1 max_success=200", /*overwrite=*/0);

// One GPU. Every flow can run but those in `blocked`.
class FakePlaceable final : public Placeable {
 public:
  bool can_run(FlowId flow) const override { return !blocked.contains(flow); }
  std::vector<Place> places(FlowId flow) const override { return {{.gpu = GpuId(1), .free = can_run(flow)}}; }

  std::set<FlowId> blocked;
};

inline Instant at_seconds(std::int64_t seconds) {
  return Instant(std::chrono::seconds(seconds));
}

}  // namespace fairlead::testing
