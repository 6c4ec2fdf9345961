// Inside of Core, shared by its .cc files; nobody else includes it. It takes events to the parts that know what follows, in the order
// that counts, and collects the actions. The parts, each with a test of its own:
//
//   tables.h            what there is: functions, invocations, instances, the queue; admission.cc: what is accepted
//   live_invocations.h  an invocation, from arrival to completion
//   runs.h              its delivery, its deadlines, what it is charged
//   instance_keeper.h   an instance comes and goes
//   start_planner.h     which instance should start, and in whose place
//   dispatchable.h      what the queue asks while it chooses
//   flow_news.h         what the queue is told of a flow's instances
//   flow_outlook.h      what is expected of a flow, and who is missed least
//   memory_claim.h      memory that is kept for who has waited too long
//   lane_meter.h        lanes of kernel tasks
//   device_table.h      which devices serve, and D
//   seats.h             instances that are kept
//   holds.h             idle instances that are held, and those that were long enough
//   idle_reason.h       why slots idle
//
// Which file of Core has what:
//   core.cc       arrivals, configuration, drain and shutdown, views
//   dispatch.cc   an invocation is chosen and bound; callers that wait no longer
//   start_ahead.cc  an instance starts without a slot
//   instances.cc  instances: ready, answered, idle, gone, past their deadline
//   memory.cc     device memory: reports, moves, requests for room
//   devices.cc    devices come, go, drain and serve
#pragma once

#include <deque>
#include <vector>

#include "decide/core/core.h"
#include "decide/core/device_table.h"
#include "decide/core/dispatchable.h"
#include "decide/core/flow_news.h"
#include "decide/core/flow_outlook.h"
#include "decide/core/idle_slots.h"
#include "decide/core/instance_keeper.h"
#include "decide/core/lane_meter.h"
#include "decide/core/live_invocations.h"
#include "decide/core/memory_claim.h"
#include "decide/core/runs.h"
#include "decide/core/start_planner.h"
#include "decide/core/tables.h"
#include "decide/placement/placer.h"
#include "decide/residency/residency.h"

namespace fairlead {

struct Core::State {
  State(CoreOptions core_options, std::unique_ptr<FlowQueue> queue);

  struct DeviceEvents;
  struct Seats;
  struct Holds;
  struct Kept {
    std::deque<FlowId> to_prepare;        // Core::prepare
    std::vector<FlowId> flows;            // that have seats
    Instant next_start = Instant::max();  // of an instance in a seat that failed
    std::vector<FlowId> held;             // functions whose instances are to be held, in their order
    Instant next_end = Instant::max();    // of an instance that is kept for a time
  };

  // ---- core.cc
  void note_call(FlowId flow);

  // ---- dispatch.cc
  void dispatch(Instant now, Actions& out);
  void offer_slots(Instant now, Actions& out);
  // REQUIRES: the placement names an instance that is spare.
  void run_on_warm(Instant now, InvocationId invocation, const Placement& placement, Actions& out);
  void evict_others(Instant now, FlowId flow, GpuId gpu, Actions& out);
  void expire_requests(Instant now, Actions& out);
  // The instance can take what is bound to it: delivers that, or lets it go where its caller waits no longer.
  void serve(Instant now, Instance& instance, Actions& out);
  // Completes what is queued, of one flow or (FlowId()) of all, in order of id.
  void complete_queued(Instant now, FlowId flow, OutcomeKind outcome, Actions& out);

  // ---- start_ahead.cc
  void start_ahead(Instant now, Actions& out);
  void start_prepared(Instant now, Actions& out);
  void fail_start(Instant now, const Instance& instance, Actions& out);

  // ---- instances.cc
  void ready(Instant now, InstanceId id, Actions& out);
  void gone(Instant now, InstanceId id, Actions& out);
  void answered(Instant now, InvocationId id, bool is_error, std::optional<Duration> gpu_time, Actions& out);
  void answered_early(Instant now, InvocationId id, bool is_error, Duration gpu_time, Actions& out);
  void work_ended(Instant now, InstanceId id, std::optional<Duration> gpu_time, Actions& out);
  void loaded(Instant now, InvocationId id, Actions& out);
  void end_run(Instant now, Instance& instance, Actions& out);
  void idle(Instant now, InstanceId id, Actions& out);
  void expire_deadlines(Instant now, Actions& out);
  // Ends what is bound to an instance that goes: `if_starting` when the instance was not ready yet, `if_running` when it
  // ran. What waited for a warm instance to return is queued again: nothing is known against it.
  void end_bound(Instant now, const Instance& instance, OutcomeKind if_starting, OutcomeKind if_running, Actions& out);
  // An invocation that was not delivered yet goes back to the head of its queue, as if it had not been chosen.
  void requeue(Instant now, InvocationId id, Actions& out);
  // Stopped for no fault of its own: what is bound to it and was not delivered is queued again.
  void stop_and_requeue(Instant now, const Instance& instance, StopReason reason, Actions& out);
  void retire_instances(Instant now, FlowId flow, Actions& out);
  void limit_concurrency(Instant now, FlowId flow, Actions& out);

  // ---- devices.cc
  void drain(Instant now, GpuId gpu, Actions& out);
  void forget_devices(Actions& out);

  // ---- memory.cc
  void settle_memory(Instant now, Actions& out);

  CoreTables tables;
  const FlowOutlook outlook;
  const Placer placer{outlook.eviction(), tables.slices};
  Residency residency;
  ResidencyDecisions decisions;  // scratch of settle_memory()
  FlowNews news{tables};
  MemoryClaim claim;
  const StartPlanner planner{tables, residency, placer};
  Dispatchable dispatchable{tables, residency, placer, planner};
  InstanceKeeper keeper{tables, residency, news};
  LaneMeter lanes{tables};
  Runs runs{tables, keeper, lanes};
  DeviceTable devices;
  IdleSlots idle_slots;
  Kept kept;
};

}  // namespace fairlead
