// What the parts of the core decide from: which functions, instances and invocations there are, and who is queued. A plain value.
//
// A part that decides sees it as const; it is changed by
//   LiveInvocations   what becomes of an invocation
//   InstancePool      what an instance does and holds
//   InstanceKeeper    an instance comes and goes, everywhere where it is known
//   FlowNews          what the queue is told of a flow's instances
//   Core::State       all else
//
// Threads: the core's.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "base/id_map.h"
#include "decide/core/core.h"
#include "decide/core/live_invocations.h"
#include "decide/core/seat_retries.h"
#include "decide/core/slice_times.h"
#include "decide/placement/instance_pool.h"
#include "decide/placement/slice_profiles.h"
#include "decide/queueing/flow_queue.h"
#include "model/arrival_pace.h"
#include "model/standing.h"

namespace fairlead {

struct CoreFunction {
  FlowSpec spec;
  LearntTime cold_start = {};  // from StartInstance to ready, wherever
  SliceTimes slice_times = {};
  Duration told_setup{0};                      // FlowQueue::set_setup, as told last
  Supply told_supply = Supply::kReady;         // FlowQueue::set_supply, as told last
  ArrivalPace pace = {};                       // as of its last arrival
  Duration owed{0};                            // GPU time that its next charge, or one of its versions', counts too
  bool keeps_data = false;                     // on GPUs, when nothing runs (Core::set_reload)
  std::map<GpuId, Duration> told_places = {};  // FlowQueue::set_setup_on, as told last
  SeatRetries seat_retries = {};
  WarmHold hold = {};
};

struct CoreTables {
  CoreOptions options;
  const std::unique_ptr<FlowQueue> queue;
  IdMap<FlowId, CoreFunction> functions = {};
  InstancePool pool = {};
  SliceProfiles slices = {};
  LiveInvocations invocations = {};
  Instant latest = {};  // of the event that is being handled
  bool draining = false;
  PinBounds pins = {};
};

inline bool starts_ahead(const CoreTables& tables) {
  const Policy& policy = tables.queue->policy();
  return tables.options.starts_per_gpu > 0 && policy.keeps_instances && !policy.one_function_per_gpu;
}

// Who has the flow's debts: of a version its function, so that no version takes debts along when it goes. Null: there is no such flow.
inline CoreFunction* debtor(CoreTables& tables, FlowId flow) {
  CoreFunction* const own = tables.functions.find(flow);
  CoreFunction* const function = own == nullptr ? nullptr : tables.functions.find(own->spec.family);
  return function == nullptr ? own : function;
}

// Neither throttled nor inactive.
inline bool is_active(const CoreTables& tables, FlowId flow) {
  return tables.functions.contains(flow) && tables.queue->state(flow) == FlowState::kActive;
}

// kResourceExhausted when a queue is full, or has no place that the tenant may take, or the function's reserved concurrency is 0;
// kNotFound; kUnavailable while the node drains.
Status admit(const CoreTables& tables, FlowId flow);

}  // namespace fairlead
