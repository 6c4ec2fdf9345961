// The question "which invocation is next?" as an interface. A policy orders flows (one per function); it never starts,
// moves or times anything and knows nothing of HTTP, processes or CUDA. One strategy per file beside this one.
//
// Time: every entry point takes `now`; no policy holds a clock.
// Threads: not thread-safe; owned by the core thread.
// Determinism: ties break by FlowId; the same calls in the same order give the same choices.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "model/arrival_pace.h"
#include "model/policy_options.h"
#include "model/standing.h"

namespace fairlead {

// Memory follows the queues (spec/1, "state of a flow"): active means keep near, throttled and inactive mean may leave.
enum class FlowState { kActive, kThrottled, kInactive };
std::string_view flow_state_name(FlowState state);

// What people see of a flow (`top`, metrics, reports).
struct FlowView {
  FlowId flow;
  FlowState state = FlowState::kInactive;
  std::size_t queued = 0;
  std::size_t in_flight = 0;
  Duration virtual_time{0};
  Duration service_estimate{0};  // tau
  bool contends =
      false;  // waits for others, in their turn: neither for a start of its own, nor ahead by more than the window
  Duration passed{0};  // virtual time that it gained without service, in all: others used slots that it could not use
  ArrivalPace pace = {};
};

// What a flow is entitled to.
struct FlowShare {
  double weight = 1.0;                // > 0
  TenantId tenant;                    // policies without tenants do not look at it
  std::optional<Duration> objective;  // wanted from arrival to answer; policies without deadlines do not look at it
};

// What a tenant is entitled to, over all its flows.
struct TenantShare {
  double weight = 1.0;                         // > 0
  std::optional<std::size_t> max_concurrency;  // in flight at most; empty: no limit
};

// Whether the core could run the head of this flow right now: a free slot, and a warm instance or room for a new one.
// Passed into choose() so that flow and device are chosen together; next_start() is given the same question about a start.
// Reserved concurrency is not its concern: the policy keeps that itself (set_max_concurrency).
class Placeable {
 public:
  virtual ~Placeable() = default;
  virtual bool can_run(FlowId flow) const = 0;
  virtual Obstacle obstacle(FlowId flow) const { return can_run(flow) ? Obstacle::kNothing : Obstacle::kItself; }
  // Told by choose() where it finds nothing: the flow could run, and is kept for the GPU that has its data, or until loading it
  // is worth what it pushes out.
  virtual void is_kept(FlowId) const {}

  // Of next_start() alone. May any instance start now; and is there a slot that choose() left free?
  virtual bool may_start() const { return true; }
  virtual bool has_free_slot() const { return true; }

  // For policies that choose the GPU too (gpu_policy.h): every GPU that serves, in order of id.
  struct Place {
    GpuId gpu;
    Duration setup{0};  // what an invocation of the flow waits for here: nothing, a reload or (never 0) a cold start
    std::size_t running = 0;  // invocations of any flow that hold a slot of the GPU
    bool free = false;        // one of the flow could run here right now
    bool evicts = false;      // what the set-up brings back takes the room of what others have here
  };
  virtual std::vector<Place> places(FlowId flow) const = 0;

  // The same of one GPU; empty: it does not serve. For policies that know themselves where to look (residency_index.h).
  virtual std::optional<Place> place(FlowId flow, GpuId gpu) const;
  // GPUs that serve where something could begin that has nothing to load, those where least runs first. Empty as well: nobody
  // can say.
  virtual std::vector<GpuId> free_gpus() const { return {}; }
};

class QueuePolicy {
 public:
  virtual ~QueuePolicy() = default;
  virtual std::string_view name() const = 0;

  // False: every invocation gets an instance of its own, which goes after its answer.
  virtual bool keeps_instances() const { return true; }

  // True: a GPU has instances of one function at a time; those of others go before its first one starts.
  virtual bool one_function_per_gpu() const { return false; }

  // Flows. A new share counts from the next invocation on; the tenant stays. Removing a flow drops what it had queued:
  // the core has already answered those invocations.
  virtual void add_flow(FlowId flow, const FlowShare& share) = 0;
  virtual void set_share(FlowId flow, const FlowShare& share) = 0;
  // Policies without tenants have no use for it.
  virtual void set_tenant(TenantId, const TenantShare&) {}
  // Reserved concurrency: at most so many in flight; empty: no limit (the default). A flow at its limit is passed over
  // and, as it waits on nobody but itself, holds no other flow back.
  virtual void set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) = 0;
  virtual void remove_flow(FlowId flow) = 0;

  // What has to pass before an invocation of the flow could execute, were it chosen now: 0 with a warm instance that is
  // free, else the cold start that is expected. Told by the core whenever it changes; 0 until then.
  virtual void set_setup(FlowId flow, Duration setup) = 0;

  // What the flow has to run on, told by the core whenever it changes where instances start ahead. A flow with nothing to
  // run on waits on itself: it holds no other flow back, and its waiting earns no credit.
  virtual void set_supply(FlowId flow, Supply supply) = 0;
  // For policies that choose the GPU by what is there: on this GPU an invocation of the flow could begin without a cold
  // start, and would first bring back data for so long; empty: it could not (any more). Told whenever it changes, and only of
  // flows that have data which stays on a GPU when nothing runs (kernel tasks).
  virtual void set_setup_on(FlowId, GpuId, std::optional<Duration>) {}

  // A queued invocation arrives, or leaves without having been chosen (cancelled). REQUIRES: the flow was added.
  virtual void on_arrival(Instant now, FlowId flow, InvocationId invocation) = 0;
  virtual bool cancel(Instant now, FlowId flow, InvocationId invocation) = 0;  // false: it was not queued

  // Chooses the next invocation, removes it from its queue and charges its flow for the dispatch. Empty when no flow is
  // both eligible and placeable. Work-conserving: never empty while an eligible, placeable flow has work; nor, where
  // supply is told, while any placeable flow has work and no eligible flow waits for memory.
  struct Choice {
    FlowId flow;
    InvocationId invocation;
    GpuId gpu = {};  // where; none: wherever it begins soonest
  };
  virtual std::optional<Choice> choose(Instant now, const Placeable& placeable) = 0;

  // When choose(), which found nothing, would say more though nothing else happened; empty: never.
  virtual std::optional<Instant> next_chance() const { return std::nullopt; }

  // Instances may start ahead of the choice (CoreOptions::starts_per_gpu): of the flows that choose() would look at, the
  // one whose instance should start next. Nothing is removed or charged. Empty when no eligible flow is `startable`.
  virtual std::optional<FlowId> next_start(Instant now, const Placeable& startable) = 0;

  // The flow that has waited for device memory for too long, if any: no work of others may take from now on what it needs.
  // Asked after choose() and next_start().
  virtual FlowId claimant() const { return FlowId(); }

  // An instance that was started ahead for the flow is ready, and slots idled for `cost` beside queued work because of
  // the memory that the start had reserved. The flow is charged what its start took from others.
  virtual void on_started(FlowId flow, Duration cost) = 0;

  // An instance that was started ahead for the flow never became ready after `took`: the head of its queue, if it has
  // one, ends unserved and is returned, and the flow is charged `took`. So a function that cannot start neither stays
  // where it is in virtual time, nor is started more often than it was invoked.
  virtual std::optional<InvocationId> fail_head(Instant now, FlowId flow, Duration took) = 0;

  // The chosen invocation ended after `service` of GPU time.
  virtual void on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) = 0;

  // The chosen invocation could not be delivered: its charge is taken back, and it is at the head of its queue again.
  virtual void on_requeue(Instant now, FlowId flow, InvocationId invocation) = 0;

  // The chosen invocation ended unserved because its instance never started. Its flow is charged the time it held its
  // slot instead of the estimate (a full refund would let a function that cannot start keep others out for ever), and
  // its service estimate stays.
  virtual void on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held) = 0;

  // Flow states change with time alone (a TTL runs out). The core calls expire() no later than next_expiry().
  virtual std::optional<Instant> next_expiry() const = 0;
  virtual void expire(Instant now) = 0;

  virtual std::size_t queued() const = 0;             // over all flows
  virtual std::size_t queued(FlowId flow) const = 0;  // 0 also: the flow is not there
  virtual FlowView view(FlowId flow) const = 0;
  virtual FlowState state(FlowId flow) const { return view(flow).state; }  // alone, as it is asked for often
  virtual Duration global_virtual_time() const = 0;

  // Whether any flow has work that waits for others: queued, below its limit, and with an instance free or busy. Work of
  // flows whose first instance has yet to start does not count.
  virtual bool contends() const = 0;
};

// One of policy_names(). Fails with the list of names for any other.
Result<std::unique_ptr<QueuePolicy>> make_policy(std::string_view name, const PolicyOptions& options);

// The names make_policy knows, the default first.
std::vector<std::string_view> policy_names();

}  // namespace fairlead
