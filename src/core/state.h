// Inside of Core, shared by its .cc files; nobody else includes it. Which file has what:
//   core.cc       arrivals, configuration, drain and shutdown, views
//   dispatch.cc   invocations: chosen, delivered, completed
//   instances.cc  instances: ready, answered, idle, gone, past their deadline
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/core.h"
#include "placement/eviction.h"
#include "placement/instance_pool.h"
#include "placement/placer.h"

namespace fairlead {

struct Core::State final : private Placeable {
  State(CoreOptions core_options, std::unique_ptr<QueuePolicy> queue_policy);

  // From arrival to completion. In its flow's queue while `instance` is none.
  struct Invocation {
    FlowId flow;
    Instant arrived;
    Instant dispatched;
    Instant delivered;
    InstanceId instance;
    StartKind start = StartKind::kCold;
    bool running = false;  // delivered
  };
  using Invocations = std::map<InvocationId, Invocation>;

  // ---- core.cc
  Status admit(FlowId flow) const;

  // ---- dispatch.cc
  void dispatch(Instant now, Actions& out);
  void deliver(Instant now, Instance& instance, Actions& out);
  // Appends the Complete and forgets the invocation. The policy and the instance are the caller's to tell.
  void complete(Instant now, Invocations::iterator invocation, Outcome outcome, Duration service, Actions& out);
  // The same, for one that ran: its flow is charged.
  void complete_run(Instant now, Invocations::iterator invocation, Outcome outcome, std::optional<Duration> gpu_time,
                    Actions& out);
  // Completes what is queued, of one flow or (FlowId()) of all, in order of id.
  void complete_queued(Instant now, FlowId flow, Outcome outcome, Actions& out);

  // ---- instances.cc
  void ready(Instant now, InstanceId id, Actions& out);
  void gone(Instant now, InstanceId id, Actions& out);
  void answered(Instant now, InvocationId id, bool is_error, std::optional<Duration> gpu_time, Actions& out);
  void idle(Instant now, InstanceId id, Actions& out);
  void expire_deadlines(Instant now, Actions& out);
  // Ends what is bound to an instance that goes: `if_starting` when the instance was not ready yet, `if_running` when it
  // ran. What waited for a warm instance to return is queued again: nothing is known against it.
  void end_bound(Instant now, const Instance& instance, Outcome if_starting, Outcome if_running, Actions& out);
  void retire_instances(FlowId flow, Actions& out);
  void limit_concurrency(Instant now, FlowId flow, Actions& out);
  void stop(InstanceId id, StopReason reason, Actions& out);
  void forget(InstanceId id);
  void set_deadline(InstanceId id, Instant at);
  void clear_deadline(InstanceId id);

  bool can_run(FlowId flow) const override;
  bool has_warm_instance(FlowId flow) const override;

  const CoreOptions options;
  const std::unique_ptr<QueuePolicy> policy;
  const LruEviction eviction;
  const Placer placer{eviction};
  std::map<FlowId, FlowSpec> functions;
  InstancePool pool;
  Invocations invocations;

  // One per instance at most: until ready, until the answer, until it asks for the next. Idle instances have none.
  std::set<std::pair<Instant, InstanceId>> deadlines;
  std::unordered_map<InstanceId, Instant> deadline_of;

  CoreCounters counters;
  bool draining = false;
};

}  // namespace fairlead
