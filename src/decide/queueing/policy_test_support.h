// Shared by the tests of the decision layers.
#pragma once

#include <cstdlib>
#include <set>

#include "decide/queueing/policy.h"

namespace fairlead::testing {

// Property tests try the same cases in every run, unless the caller's RC_PARAMS says otherwise ("seed=7 max_success=9").
inline const int kFixedSeed = setenv("RC_PARAMS", "seed=1 max_success=200", /*overwrite=*/0);

// One GPU. Every flow can run, or start, but those that are named.
class FakePlaceable final : public Placeable {
 public:
  bool can_run(FlowId flow) const override { return obstacle(flow) == Obstacle::kNothing; }
  Obstacle obstacle(FlowId flow) const override {
    if (blocked.contains(flow)) return Obstacle::kItself;
    if (short_of_memory.contains(flow)) return Obstacle::kMemory;
    if (behind_starts.contains(flow)) return Obstacle::kStarts;
    return elsewhere.contains(flow) ? Obstacle::kSlots : Obstacle::kNothing;
  }
  bool may_start() const override { return starts_allowed; }
  bool has_free_slot() const override { return slot_is_free; }
  FlowId at_once() const override { return seated; }
  std::vector<Place> places(FlowId flow) const override { return {{.gpu = GpuId(1), .free = can_run(flow)}}; }
  std::vector<GpuId> free_gpus() const override { return {GpuId(1)}; }

  std::set<FlowId> blocked, short_of_memory, behind_starts, elsewhere;  // by Obstacle
  FlowId seated;                                                        // who goes at once; none: all by turns
  bool starts_allowed = true, slot_is_free = true;
};

inline Instant at_seconds(std::int64_t seconds) {
  return Instant(std::chrono::seconds(seconds));
}

}  // namespace fairlead::testing
