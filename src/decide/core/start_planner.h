// Which instances should start: whether a flow needs one more, where it fits, who would leave it the place, and what keeps it from
// starting. Decides; starts nothing (InstanceKeeper, start_ahead.cc).
//
// Starting ahead (CoreOptions::starts_per_gpu): a cold start is mostly process start, loading of libraries and copying, and leaves the
// GPU idle. So an instance starts without a slot, for a flow rather than for an invocation, while warm invocations of others run. Once
// ready it is an idle instance like any other, and the policy's own order gives it its turn.
//
// Example: one slot, A (start 9 s, tau 1 s) and B (warm, tau 2 s) with four queued each, all at 0 s. Holding the slot,
// A's start ends at 9 s and all is answered at 9 + 4 + 8 = 21 s. Started ahead, B's four run from 0 to 8 s, A is ready at
// 9 s and all is answered at 13 s.
//
// What must not happen, and why it does not:
// - Thrashing. An instance that has served nothing yet while its flow has work is not stopped for another's start, unless
//   a slot idles: then nothing that is warm could use it. Nor is any other once as many instances start, or wait for their
//   first invocation, as the GPU has slots: they are enough for the next turns, and a further start would only put somebody
//   else's warm instance in the place of one that waits. Example: a pool of 12, five functions that start in 10 s and are
//   called once a second, and 270 that start in 0.2 s and are called once. Without this rule the 270 fill the pool with
//   instances that wait for a slot, and the five lose theirs: their mean latency is 200 s instead of 20.
// - Starving. The policy orders starts as it orders invocations, and all other idle instances can go. What starts and what
//   runs fit the device together; a flow that needs much memory holds Global_VT until there is room, as ever.
// - Starting for ever. A failed start ends one queued invocation of its flow and charges the flow its time.
//
// Threads: the core's. Determinism: as placer.h.
#pragma once

#include <optional>
#include <vector>

#include "decide/core/tables.h"
#include "decide/placement/placer.h"
#include "decide/residency/residency.h"

namespace fairlead {

class StartPlanner final : public Yielding {
 public:
  StartPlanner(const CoreTables& tables, const Residency& residency, const Placer& placer)
      : tables_(tables), residency_(residency), placer_(placer) {}

  // Whether any instance may start ahead now.
  bool may_start() const;
  // Whether the flow may have one more instance (FlowSpec::most_instances). REQUIRES of all below: its function is there.
  bool may_have_more(FlowId flow) const;
  // Where the flow should start an instance ahead now. Empty: nowhere, or it needs none.
  std::optional<Placement> place(FlowId flow) const;
  Obstacle obstacle(FlowId flow) const;  // kItself: it needs none
  // Where the first instance of a flow that nobody has called yet may start: only in a place that is free. Empty: nowhere, or it
  // has one.
  std::optional<Placement> place_prepared(FlowId flow) const;

  // Whether an invocation that finds no free instance of the flow should wait for a busy one rather than have one started; and when to
  // ask again at the latest, since one of the busy ones is overdue then.
  bool worth_waiting(FlowId flow) const { return worth_waiting_until(flow).has_value(); }
  std::optional<Instant> worth_waiting_until(FlowId flow) const;
  // GPUs on which another instance of the flow would wait for the same as one that is free there.
  std::vector<GpuId> held_back_on(FlowId flow) const;

  bool may_go(const Gpu& gpu) const override;
  bool may_go(const Instance& instance) const override;

 private:
  std::optional<Placer::StartAhead> wanted(FlowId flow) const;
  bool worth_a_duplicate(FlowId flow) const;
  Duration expected_start(FlowId flow) const;

  const CoreTables& tables_;
  const Residency& residency_;
  const Placer& placer_;
};

}  // namespace fairlead
