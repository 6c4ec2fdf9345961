// MQFQ-Sticky (spec/1; paper section 4, Algorithm 1): fair queueing that lets one function run a little ahead.
//
// Idea. A flow's virtual time (VT) counts the GPU service it was given, divided by its weight. Global_VT is the least VT
// of all flows that have work. A flow may run while it is at most T ahead of Global_VT; within that window it is served
// back to back, on its warm instance. Beyond it, it is throttled until the others have caught up. So no two flows that
// both have work drift apart by more than a constant, however much either sends.
//
// Example, T = 10 s, one token, invocations of 4 s; A has six queued, B two. The longer queue is preferred:
//
//   choice   VT of A   VT of B   Global_VT
//   A           4         0          0
//   A           8         0          0
//   A          12         0          0      A is 12 s ahead: throttled
//   B          12         4          4      A is 8 s ahead: eligible again
//   A          16         4          4      throttled
//   B          16         8         16      B is empty: A alone has work
//   A A
//
// T = 0 (plain start-time fair queueing) serves A B A B A A A A.
//
// Decisions where the paper is silent or disagrees with itself (docs/design/core.md gives the reasons):
// - Global_VT is over flows with runnable work and never falls. A correction that pulls a flow below it makes that flow
//   eligible and moves nothing else. A flow that had no runnable work (empty, or at its own reserved concurrency) joins
//   at Global_VT or later: waiting on nobody but itself earns no credit.
// - The estimate tau / w is charged at dispatch and corrected at completion. Unknown tau is T / 10, at least 1 ms, so
//   that T = 0 charges something too.
//
// Cost: O(log n) per call. Measured with 10,000 backlogged flows: policy_bench.cc.
// Time, threads, determinism: as policy.h. All arithmetic is on integer nanoseconds.
#pragma once

#include "queueing/keyed_policy.h"

namespace fairlead {

class MqfqSticky : public QueuePolicy {
 public:
  explicit MqfqSticky(const PolicyOptions& options) : flows_(options), options_(options), over_run_(options.over_run) {}

  std::string_view name() const override { return "mqfq-sticky"; }
  void add_flow(FlowId flow, const FlowShare& share) override;
  void set_share(FlowId flow, const FlowShare& share) override;
  void set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) override;
  void set_setup(FlowId flow, Duration setup) override;
  void remove_flow(FlowId flow) override;
  void on_arrival(Instant now, FlowId flow, InvocationId invocation) override;
  bool cancel(Instant now, FlowId flow, InvocationId invocation) override;
  std::optional<Choice> choose(Instant now, const Placeable& placeable) override;
  std::optional<FlowId> next_start(const Placeable& startable) override;
  std::optional<InvocationId> fail_head(Instant now, FlowId flow, Duration took) override;
  void on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) override;
  void on_requeue(Instant now, FlowId flow, InvocationId invocation) override;
  void on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held) override;
  std::optional<Instant> next_expiry() const override { return flows_.next_expiry(); }
  void expire(Instant now) override { flows_.expire(now); }
  std::size_t queued() const override { return flows_.queued(); }
  std::size_t queued(FlowId flow) const override { return flows_.queued(flow); }
  FlowView view(FlowId flow) const override;
  Duration global_virtual_time() const override { return global_; }

 protected:
  using Slot = FlowTable::Slot;

  // Who goes first within the window: the least.
  struct Preference {
    std::uint64_t rank;
    Duration virtual_time;
    FlowId flow;
    auto operator<=>(const Preference&) const = default;
  };

  // Section 4.3: fewest in flight, then longest queue, then smallest VT, then lowest id. REQUIRES: runnable.
  virtual Preference preference(const Flow& flow) const;
  virtual std::optional<Slot> pick(const Placeable& placeable);

  // For orders that choose the GPU too, and keep an index of their own: who goes where, none: wherever it begins soonest;
  // a flow is eligible, or changed while it is; it is not any more.
  struct Pick {
    Slot slot;
    GpuId gpu = {};
  };
  virtual std::optional<Pick> pick_place(Instant now, const Placeable& placeable);
  virtual void on_eligible(Slot slot) { preferred_.set(slot, preference(flows_[slot])); }
  virtual void on_ineligible(Slot slot) { preferred_.erase(slot); }
  bool is_eligible(Slot slot) const { return least_served_.contains(slot); }
  void settle(Slot slot);

  // A function with an objective (its answer is wanted within so long) as a class of its own, for orders that have it:
  // what is due soonest, before all flows that have none. `rank`: among those. REQUIRES: rank < 2^63.
  static Preference objectives_first(const Flow& flow, std::uint64_t rank);

  FlowTable flows_;
  IndexedHeap<Preference> preferred_;  // eligible flows, but those that an index of a derived class has

 private:
  using ByVirtualTime = ByTime<Duration>;

  bool within_window(const Flow& flow) const { return flow.virtual_time - global_ <= over_run_; }
  Duration estimate(const Flow& flow) const;
  void enter_heaps(Slot slot);
  void leave_heaps(Slot slot);
  void advance_global();
  void adapt_window(Duration service);

  const PolicyOptions options_;
  Duration over_run_;         // T
  Duration mean_service_{0};  // over all flows; kept only where T follows it
  Duration global_{0};        // Global_VT

  // Each runnable flow is either eligible, in preferred_ and the first of these, or throttled.
  IndexedHeap<ByVirtualTime> least_served_;
  IndexedHeap<ByVirtualTime> throttled_;
};

}  // namespace fairlead
