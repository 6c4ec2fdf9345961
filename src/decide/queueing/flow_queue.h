// The question "which invocation is next?": who waits, who runs, what each flow (one per function) is charged, when an empty
// one may leave the GPU. Whose turn it is the policy's order says (order.h). The queue never starts, moves or times
// anything and knows nothing of HTTP, processes or CUDA.
//
// With tenants (PolicyOptions::by_tenant) there is a second level: tenants in the order of tenant_level.h, each with an
// order of its own for its flows.
//
//   core ──> FlowQueue ──> FlowGroups ──> TenantLevel, if any
//                                    └──> FlowGroup, one or one per tenant: FlowTable (books) + Order (the policy)
//
// Time: every entry point takes `now`; nothing here holds a clock.
// Threads: not thread-safe; owned by the core thread.
// Determinism: ties break by FlowId; the same calls in the same order give the same choices.
#pragma once

#include <cstddef>
#include <optional>

#include "decide/queueing/flow_groups.h"
#include "decide/queueing/flow_view.h"
#include "decide/queueing/placeable.h"

namespace fairlead {

class FlowQueue final {
 public:
  // REQUIRES: the options are within their bounds (make_policy checks it). `policy` outlives the queue.
  FlowQueue(const Policy& policy, const PolicyOptions& options);

  const Policy& policy() const { return policy_; }
  // Of flows without tenants; for tests that look into it.
  const Order& order() const { return *groups_.all().front()->order; }

  // Flows. A new share counts from the next invocation on; the tenant stays. Removing a flow drops what it had queued:
  // the core has already answered those invocations.
  void add_flow(FlowId flow, const FlowShare& share) { groups_.add(flow, share); }
  void set_share(FlowId flow, const FlowShare& share);
  // No effect without tenants.
  void set_tenant(TenantId tenant, const TenantShare& share) { groups_.set_tenant(tenant, share); }
  // Reserved concurrency: at most so many in flight; empty: no limit (the default). A flow at its limit is passed over
  // and, as it waits on nobody but itself, holds no other flow back.
  void set_max_concurrency(FlowId flow, std::optional<std::size_t> limit);
  void remove_flow(FlowId flow);

  // What has to pass before an invocation of the flow could execute, were it chosen now: 0 with a warm instance that is
  // free, else the cold start that is expected. Told by the core whenever it changes; 0 until then.
  void set_setup(FlowId flow, Duration setup);

  // What the flow has to run on, told by the core whenever it changes where instances start ahead. A flow with nothing to
  // run on waits on itself: it holds no other flow back, and its waiting earns no credit.
  void set_supply(FlowId flow, Supply supply);
  // For policies that choose the GPU by what is there (DataPlaces): on this GPU an invocation of the flow could begin without
  // a cold start, and would first bring back data for so long; empty: it could not (any more). Told whenever it changes, and
  // only of flows that have data which stays on a GPU when nothing runs (kernel tasks).
  void set_setup_on(FlowId flow, GpuId gpu, std::optional<Duration> setup);

  // A queued invocation arrives, or leaves without having been chosen (cancelled). REQUIRES: the flow was added.
  void on_arrival(Instant now, FlowId flow, InvocationId invocation);
  bool cancel(Instant now, FlowId flow, InvocationId invocation);  // false: it was not queued

  // Chooses the next invocation, removes it from its queue and charges its flow for the dispatch (unless it goes at once:
  // Placeable::at_once; then its turn and its charge come with its end). Empty when no flow is
  // both eligible and placeable. Work-conserving: never empty while an eligible, placeable flow has work; nor, where
  // supply is told, while any placeable flow has work and no eligible flow waits for memory.
  using Choice = FlowGroups::Choice;
  std::optional<Choice> choose(Instant now, const Placeable& placeable);

  // When choose(), which found nothing, would say more though nothing else happened; empty: never.
  std::optional<Instant> next_chance() const { return groups_.next_chance(); }

  // Instances may start ahead of the choice (CoreOptions::starts_per_gpu): of the flows that choose() would look at, the
  // one whose instance should start next. Nothing is removed or charged. Empty when no eligible flow is `startable`.
  std::optional<FlowId> next_start(Instant now, const Placeable& startable) {
    return groups_.next_start(now, startable);
  }

  // The flow that has waited for device memory for too long, if any: no work of others may take from now on what it needs.
  // Asked after choose() and next_start().
  FlowId claimant() const;

  // An instance that was started ahead for the flow is ready, and slots idled for `cost` beside queued work because of
  // the memory that the start had reserved. The flow is charged what its start took from others.
  void on_started(FlowId flow, Duration cost);

  // An instance that was started ahead for the flow never became ready after `took`: the head of its queue, if it has
  // one, ends unserved and is returned, and the flow is charged `took`. So a function that cannot start neither stays
  // where it is in virtual time, nor is started more often than it was invoked.
  std::optional<InvocationId> fail_head(Instant now, FlowId flow, Duration took);

  // The chosen invocation ended after `service` of GPU time. `entitled`: so much of it was paid for when its flow was admitted, and
  // costs no virtual time; at most all of it.
  void on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service,
                     Duration entitled = Duration(0));

  // The chosen invocation could not be delivered: its charge is taken back, and it is at the head of its queue again.
  void on_requeue(Instant now, FlowId flow, InvocationId invocation);

  // The chosen invocation ended unserved because its instance never started. Its flow is charged the time it held its
  // slot instead of the estimate (a full refund would let a function that cannot start keep others out for ever), and
  // its service estimate stays.
  void on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held);

  // Flow states change with time alone (a TTL runs out). The core calls expire() no later than next_expiry().
  std::optional<Instant> next_expiry() const;
  void expire(Instant now);

  std::size_t queued() const { return queued_; }                          // over all flows
  std::size_t queued(FlowId flow) const { return groups_.queued(flow); }  // 0 also: the flow is not there
  FlowView view(FlowId flow) const;
  FlowState state(FlowId flow) const;  // alone, as it is asked for often
  Duration global_virtual_time() const { return groups_.global_virtual_time(); }

  // Whether any flow has work that waits for others: queued, below its limit, and with an instance free or busy. Work of
  // flows whose first instance has yet to start does not count.
  bool contends() const { return groups_.contends(); }

 private:
  friend struct QueueTenants;  // queue_tenants.h
  const Policy& policy_;
  FlowGroups groups_;
  std::size_t queued_ = 0;
};

}  // namespace fairlead
