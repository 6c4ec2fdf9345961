// Resident first, within a window of service: MQFQ's over-run T (Hedayati et al. 2019) applied to data on devices.
//
// Idea. Fair order serves flows in turn. Where their constants do not all fit, turns are a cyclic sweep: under LRU each
// flow finds its own evicted just before its turn, and every invocation loads. Fairness over a second needs no strict
// turns, though: among flows within T of the least served, one whose constants are on the idle GPU goes first. Those
// without are served when the others are T ahead; each load then pays for T of service instead of one invocation.
//
// Example: 32 flows of 2 GB on 4 GPUs with room for 7 each, invocations of 39 ms, 167 ms to load. In turns, each costs
// 206 ms. With T = 500 ms a flow that was loaded has about 13 invocations before it is T ahead: 39 + 167 / 13 = 52 ms.
//
//   1. flows within T of the minimum before those that are not (who go only where a GPU would else idle)
//   2. least set-up on that GPU first; then the GPU with fewest invocations, then the least served
//   3. a flow whose constants are on another GPU does not leave it for one where they push out others' before its invocation
//      has waited as long as loading them there takes, four times. Once would be the ski rental rule, if the load were all
//      it costs; but it also pushes out somebody who then loads too. Near the edge of memory that is a sweep again: 24
//      clients at 80 % of the peak, p90 1.1 s with once, 0.17 s with four times. A copy into free memory costs nobody
//      anything and is made at once. Only this holds work back from an idle GPU, and only for so long.
//
// Cost, time, threads, determinism: as gpu_policy.h.
#pragma once

#include "queueing/gpu_policy.h"

namespace fairlead {

class ResidentWindow final : public GpuPolicy {
 public:
  using GpuPolicy::GpuPolicy;
  std::string_view name() const override { return "resident-window"; }
  std::optional<Instant> next_chance() const override { return next_chance_; }

 protected:
  std::optional<Pick> pick(Instant now, const Placeable& placeable) override;

 private:
  struct Candidate;
  void consider(Instant now, Row row, const std::vector<Placeable::Place>& places, std::optional<Candidate>& best);
  Duration patience(Duration setup) const;

  std::optional<Instant> next_chance_;
};

}  // namespace fairlead
