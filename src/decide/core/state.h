// Inside of Core, shared by its .cc files; nobody else includes it. Which file has what:
//   core.cc       arrivals, configuration, drain and shutdown, views
//   gpus.cc       GPUs: how many slots, whether they serve
//   devices.cc    what their monitor and daemons say: health, dynamic D
//   task_lanes.cc  lanes of kernel tasks: measured, and given up while a program has its turn
//   dispatch.cc   invocations: chosen, delivered, completed
//   request_deadlines.cc  invocations whose callers wait no longer
//   start_ahead.cc  which instance starts without a slot, and in whose place
//   instances.cc  instances: ready, answered, idle, gone, past their deadline
//   idle_slots.cc  why slots idle beside queued work, for how long, and which starts pay for it
//   seats.h       instances that are kept: started before anybody calls, and used without a slot
//   start_costs.cc  cold starts: learnt, told to the policy, and avoided
//   memory.cc     device memory: reports, moves, requests for room; what residency asks and decides
#pragma once

#include <deque>
#include <map>

#include "base/id_map.h"
#include "decide/core/core.h"
#include "decide/core/deadlines.h"
#include "decide/core/idle_slots.h"
#include "decide/core/request_deadlines.h"
#include "decide/core/seat_retries.h"
#include "decide/placement/eviction.h"
#include "decide/placement/instance_pool.h"
#include "decide/placement/placer.h"
#include "decide/residency/residency.h"
#include "decide/sharing/dynamic_slots.h"
#include "decide/sharing/gpu_health.h"
#include "decide/sharing/measured_lanes.h"

namespace fairlead {

// What is charged for a slot that was held for `held`: the report, at least a tenth of that and at most all of it; all of
// it where nothing was reported.
Duration bounded_use(std::optional<Duration> reported, Duration held);

// Until when others' loads wait for that of the instance, which begins.
Instant load_deadline(Instant now, const Instance& instance);

struct Core::State final : private Placeable,
                           private ResidencyContext,
                           private RestartCosts,
                           private FlowActivity,
                           private Yielding {
  State(CoreOptions core_options, std::unique_ptr<FlowQueue> queue_policy);

  struct Function {
    FlowSpec spec;
    std::optional<Duration> cold_start = {};     // from StartInstance to ready: 0.9 old + 0.1 new; empty: not known
    Duration told_setup{0};                      // FlowQueue::set_setup, as told last
    Supply told_supply = Supply::kReady;         // FlowQueue::set_supply, as told last
    ArrivalPace pace = {};                       // as of its last arrival
    Duration owed{0};                            // GPU time that its next charge counts too
    bool keeps_data = false;                     // on GPUs, when nothing runs (Core::set_reload)
    std::map<GpuId, Duration> told_places = {};  // FlowQueue::set_setup_on, as told last
    SeatRetries seat_retries = {};
  };
  // What the policy heard when it found nothing (more) to run, or to start.
  struct Answers {
    std::optional<Obstacle> run,
        start;     // of the first flow that it asked about and that waits for more than itself, if any
    FlowId waits;  // whose answer `run` is
    bool one_could_run = false;
    bool one_is_kept = false;  // it could, and the policy has its reasons

    void note_run(FlowId flow, Obstacle obstacle) {
      one_could_run |= obstacle == Obstacle::kNothing;
      if (obstacle != Obstacle::kNothing && note(run, obstacle)) waits = flow;
    }
    void note_start(Obstacle obstacle) { note(start, obstacle); }

   private:
    static bool note(std::optional<Obstacle>& first, Obstacle obstacle) {
      const bool is_first = !first || first == Obstacle::kItself;
      if (is_first) first = obstacle;
      return is_first;
    }
  };
  struct HeldClaim {
    FlowId flow;  // FlowQueue::claimant, as asked last
    std::optional<Placement> place;
  };
  struct Device {
    GpuHealth health;
    std::optional<DynamicSlots> slots;  // none: D is fixed
    bool goes = false;                  // DeviceWent
    bool is_withheld = false;           // Core::drain_gpu
    // Who took it from service gives it back for himself alone.
    bool may_serve() const { return !goes && !is_withheld && health.state() == GpuState::kServing; }
  };
  struct Devices {
    std::map<GpuId, Device> all;  // those of the pool
    std::vector<GpuId> going;     // of them: Device::goes
  };
  struct DeviceEvents;
  struct Seats;
  struct Kept {
    std::deque<FlowId> to_prepare;        // Core::prepare
    std::vector<FlowId> flows;            // that have seats
    Instant next_start = Instant::max();  // of an instance in a seat that failed
  };
  // From arrival to completion. In its flow's queue while `instance` is none.
  struct Invocation {
    FlowId flow;
    TenantId tenant;  // of its function when it arrived
    Instant arrived;
    Instant dispatched;
    Instant delivered;
    Instant run_deadline;  // once it is delivered
    InstanceId instance;
    StartKind start = StartKind::kCold;
    bool running = false;                        // delivered
    bool answered = false;                       // completed, while its work on the device goes on
    bool expired = false;                        // completed, while what it was dispatched to is not ready for it yet
    Instant deadline = RequestDeadlines::kNone;  // its caller's
    Duration stated{0};                          // GPU time that its Complete stated, once it has answered
    Duration owed{0};                            // that it was charged beyond its own use
    Duration instance_start{0};                  // of a cold one, once it is delivered

    Instant since() const { return running ? delivered : dispatched; }
  };
  // By id, and how many of each tenant there are. A tenant is known once it has had a function.
  class LiveInvocations : public IdMap<InvocationId, Invocation> {
   public:
    bool add(InvocationId id, const Invocation& invocation) {  // false: it is there
      const auto tenant = static_cast<std::size_t>(invocation.tenant.value());
      if (!try_emplace(id, invocation).second) return false;
      if (tenant >= of_.size()) of_.resize(tenant + 1);
      ++of_[tenant];
      return true;
    }
    void erase(InvocationId id) {  // REQUIRES: it is there
      --of_[static_cast<std::size_t>(at(id).tenant.value())];
      IdMap::erase(id);
    }
    void know(TenantId tenant) { tenants_.insert(tenant); }
    bool has_several_tenants() const { return tenants_.size() > 1; }
    std::size_t of(TenantId tenant) const {
      return tenant.value() < of_.size() ? of_[static_cast<std::size_t>(tenant.value())] : 0;
    }

   private:
    std::vector<std::size_t> of_;  // tenants count up from 0
    std::set<TenantId> tenants_;
  };

  // ---- core.cc
  Status admit(FlowId flow) const;
  std::size_t queued(FlowId flow) const { return policy->queued(flow); }
  void note_call(FlowId flow);

  // ---- dispatch.cc
  void dispatch(Instant now, Actions& out);
  void offer_slots(Instant now, Actions& out);
  // REQUIRES: the placement names an instance that is spare.
  void run_on_warm(Instant now, InvocationId invocation, const Placement& placement, Actions& out);
  void evict_others(Instant now, FlowId flow, GpuId gpu, Actions& out);
  void deliver(Instant now, Instance& instance, Actions& out);
  // Appends the Complete and forgets the invocation. The policy and the instance are the caller's to tell.
  void complete(Instant now, InvocationId id, OutcomeKind outcome, Duration service, Actions& out);
  void append_completion(Instant now, InvocationId id, OutcomeKind outcome, Duration service, Actions& out);
  // The same, for one that ran: its flow is charged. One that answered early is charged and forgotten, with a Charge.
  void complete_run(Instant now, InvocationId id, OutcomeKind outcome, std::optional<Duration> gpu_time, Actions& out);
  Duration charge_run(Instant now, InvocationId id, std::optional<Duration> gpu_time);
  // Completes what is queued, of one flow or (FlowId()) of all, in order of id.
  void complete_queued(Instant now, FlowId flow, OutcomeKind outcome, Actions& out);

  // ---- request_deadlines.cc
  void expire_requests(Instant now, Actions& out);
  // The instance can take what is bound to it: delivers that, or lets it go where its caller waits no longer.
  void serve(Instant now, Instance& instance, Actions& out);

  // ---- start_ahead.cc
  bool starts_ahead() const {
    return options.starts_per_gpu > 0 && policy->policy().keeps_instances && !policy->policy().one_function_per_gpu;
  }
  void start_ahead(Instant now, Actions& out);
  void start_prepared(Instant now, Actions& out);
  bool may_start_ahead() const;
  bool may_have_more(FlowId flow) const;  // instances
  std::optional<Placer::StartAhead> wanted_start(FlowId flow) const;
  std::optional<Placement> place_start(FlowId flow) const;
  Obstacle obstacle_to_start(FlowId flow) const;
  void note_supply(FlowId flow);
  void keep_claim();
  bool worth_a_duplicate(FlowId flow) const;
  std::vector<GpuId> held_back_on(FlowId flow) const;
  bool may_go(const Gpu& gpu) const override;
  bool may_go(const Instance& instance) const override;
  // `bound`: holding a slot for it; none: ahead.
  InstanceId start(Instant now, FlowId flow, const Placement& placement, InvocationId bound, Actions& out);
  void fail_start(Instant now, const Instance& instance, Actions& out);

  // ---- instances.cc
  void ready(Instant now, InstanceId id, Actions& out);
  void gone(Instant now, InstanceId id, Actions& out);
  void answered(Instant now, InvocationId id, bool is_error, std::optional<Duration> gpu_time, Actions& out);
  void answered_early(Instant now, InvocationId id, bool is_error, Duration gpu_time, Actions& out);
  void work_ended(Instant now, InstanceId id, std::optional<Duration> gpu_time, Actions& out);
  void end_run(Instant now, Instance& instance, Actions& out);
  void idle(Instant now, InstanceId id, Actions& out);
  void expire_deadlines(Instant now, Actions& out);
  // Ends what is bound to an instance that goes: `if_starting` when the instance was not ready yet, `if_running` when it
  // ran. What waited for a warm instance to return is queued again: nothing is known against it.
  void end_bound(Instant now, const Instance& instance, OutcomeKind if_starting, OutcomeKind if_running, Actions& out);
  // An invocation that was not delivered yet goes back to the head of its queue, as if it had not been chosen.
  void requeue(Instant now, InvocationId id, Actions& out);
  void retire_instances(Instant now, FlowId flow, Actions& out);
  void limit_concurrency(Instant now, FlowId flow, Actions& out);
  void evict(Instant now, InstanceId id, Actions& out);
  void stop(Instant now, InstanceId id, StopReason reason, Actions& out);
  void forget(InstanceId id);

  // ---- start_costs.cc
  void learn_cold_start(FlowId flow, Duration took);
  void note_setup(FlowId flow);
  void note_places(FlowId flow, Function& function);
  Duration setup_on(FlowId flow, GpuId gpu) const;
  void set_reload(InstanceId id, Duration reload);
  void note_reload(Instance& instance, Duration reload);
  Duration expected_start(FlowId flow) const;
  bool worth_waiting(FlowId flow) const;

  // ---- gpus.cc
  void drain(Instant now, GpuId gpu, Actions& out);
  void drain_instance(Instant now, Instance& instance, Actions& out);

  // ---- devices.cc
  void add_device(const GpuSpec& gpu);
  void forget_devices(Actions& out);

  // ---- task_lanes.cc
  void add_lanes(const GpuSpec& gpu);
  void keep_programs_in_turn();
  void begin_computing(Instant now, const Instance& instance);
  void end_computing(Instant now, InvocationId id, bool says_something);
  void forget_task(FlowId flow);
  void loaded(Instant now, InvocationId id, Actions& out);
  bool outlasts_load(Instant now, Instance& instance);

  // ---- memory.cc
  void settle_memory(Instant now, Actions& out);
  void give_way(Instant now, InstanceId id, Actions& out);
  void count_memory(Instance& instance);

  FlowDemand demand_of(FlowId flow) const override;
  bool may_stop(InstanceId instance) const override { return !pool.find(instance)->terms.is_seated; }
  InstanceId cheapest_to_stop(const std::vector<InstanceId>& idle) const override;
  bool is_active(FlowId flow) const override;
  Duration cold_start(FlowId flow) const override;
  Duration expected_gap(FlowId flow) const override;
  std::size_t instances(FlowId flow) const override;

  bool can_run(FlowId flow, GpuId only) const;
  bool can_run(FlowId flow) const override;
  Obstacle obstacle(FlowId flow) const override;
  Obstacle obstacle_to_run(FlowId flow) const;
  void is_kept(FlowId) const override { answers.one_is_kept = true; }
  std::vector<Place> places(FlowId flow) const override;
  std::optional<Place> place(FlowId flow, GpuId gpu) const override;
  std::vector<GpuId> free_gpus() const override;

  CoreOptions options;
  const std::unique_ptr<FlowQueue> policy;
  const std::unique_ptr<const EvictionPolicy> eviction;
  const Placer placer{*eviction};
  Residency residency;
  ResidencyDecisions decisions;  // scratch of settle_memory()
  IdMap<FlowId, Function> functions;
  InstancePool pool;
  Devices devices;
  std::map<GpuId, MeasuredLanes> measured_lanes;  // where they are measured
  LiveInvocations invocations;

  Deadlines deadlines;  // idle instances have none
  RequestDeadlines request_deadlines;

  Instant latest{};  // of the event that is being handled

  // ---- idle_slots.cc
  void note_idle_slots(Instant now);
  IdleReason why_slots_idle() const;
  IdleSlots idle_slots;
  mutable Answers answers;  // of the dispatch that is under way
  HeldClaim claim;

  CoreCounters counters;  // but those of memory
  bool draining = false;
  Kept kept;
};

}  // namespace fairlead
