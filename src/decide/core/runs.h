// What runs: from the delivery of an invocation to the end of its work on the device. A run has a deadline, computes in a lane where it
// is a kernel task's, and is charged when its work has ended.
//
//   begin ──> loads (a kernel task whose data is away) ──loaded, or too late──> computes ──> end: Complete, charged
//         └──> computes ───────────────────────────────────────────────────────────┘  └──> answer_early: Complete ──> end: Charge
//
// What is charged lies between a tenth of the time that the slot was held and all of it (docs/explanation/core.md). Example: a run holds
// its slot for 2 s and reports 50 ms of GPU time: it costs 200 ms. What its flow owes from before is added, whatever the bounds.
//
// A run in a seat was promised part of the time when its function was admitted: that part costs no virtual time.
// Example: a request of 40 %, 2 s held, 1 s used: 800 ms of that second were paid for.
//
// A load that takes too long goes on in a lane, as if its data were there: others' loads wait for it no longer.
//
// Threads: the core's.
#pragma once

#include <cstdint>
#include <optional>

#include "decide/core/instance_keeper.h"
#include "decide/core/lane_meter.h"
#include "decide/core/tables.h"

namespace fairlead {

// What is charged for a slot that was held for `held`: the report, at least a tenth of that and at most all of it; all of
// it where nothing was reported.
Duration bounded_use(std::optional<Duration> reported, Duration held);

class Runs {
 public:
  Runs(CoreTables& tables, InstanceKeeper& keeper, LaneMeter& lanes)
      : tables_(tables), keeper_(keeper), lanes_(lanes) {}

  // Delivers what is bound to the instance. REQUIRES: it waits for that.
  void begin(Instant now, Instance& instance, Actions& out);
  // The instance has loaded what its invocation needs, and computes. REQUIRES: it loads.
  void loaded(Instant now, Instance& instance);
  // The instance is overdue. True: only its load was; it goes on, and has the deadline of its run from now on.
  bool outlasts_load(Instant now, Instance& instance);

  // Its answer goes out; `gpu_time` so far. REQUIRES of both: it runs.
  void answer_early(Instant now, InvocationId id, bool is_error, Duration gpu_time, Actions& out);
  // Over: its flow is charged. `outcome` has no meaning where it answered early.
  void end(Instant now, InvocationId id, OutcomeKind outcome, std::optional<Duration> gpu_time, Actions& out);

  std::uint64_t loads_given_up() const { return loads_given_up_; }

 private:
  Duration charge(Instant now, InvocationId id, std::optional<Duration> gpu_time);

  CoreTables& tables_;
  InstanceKeeper& keeper_;
  LaneMeter& lanes_;
  std::uint64_t loads_given_up_ = 0;
};

}  // namespace fairlead
