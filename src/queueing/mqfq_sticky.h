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

#include "queueing/flow_table.h"
#include "queueing/indexed_heap.h"
#include "queueing/policy.h"

namespace fairlead {

class MqfqSticky final : public QueuePolicy {
 public:
  explicit MqfqSticky(const PolicyOptions& options) : over_run_(options.over_run), flows_(options) {}

  std::string_view name() const override { return "mqfq-sticky"; }
  void add_flow(FlowId flow, double weight) override;
  void set_weight(FlowId flow, double weight) override;
  void set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) override;
  void remove_flow(FlowId flow) override;
  void on_arrival(Instant now, FlowId flow, InvocationId invocation) override;
  bool cancel(Instant now, FlowId flow, InvocationId invocation) override;
  std::optional<Choice> choose(Instant now, const Placeable& placeable) override;
  void on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) override;
  void on_requeue(Instant now, FlowId flow, InvocationId invocation) override;
  void on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held) override;
  std::optional<Instant> next_expiry() const override { return flows_.next_expiry(); }
  void expire(Instant now) override { flows_.expire(now); }
  std::size_t queued() const override { return flows_.queued(); }
  FlowView view(FlowId flow) const override;
  Duration global_virtual_time() const override { return global_; }

 private:
  using Slot = FlowTable::Slot;

  // Section 4.3: fewest in flight, then longest queue, then smallest VT, then lowest id.
  struct Preference {
    std::uint64_t rank;  // in flight << 32 | ~queued: one comparison decides most
    Duration virtual_time;
    FlowId flow;
    auto operator<=>(const Preference&) const = default;
  };
  struct ByVirtualTime {
    Duration virtual_time;
    FlowId flow;
    auto operator<=>(const ByVirtualTime&) const = default;
  };
  static Preference preference(const Flow& flow);

  bool within_window(const Flow& flow) const { return flow.virtual_time - global_ <= over_run_; }
  Duration estimate(const Flow& flow) const;
  void settle(Slot slot);
  void enter_heaps(Slot slot);
  void leave_heaps(Slot slot);
  void advance_global();

  const Duration over_run_;  // T
  FlowTable flows_;
  Duration global_{0};  // Global_VT

  // Each runnable flow is either eligible, in the first two, or throttled. Every throttled VT exceeds every eligible one
  // (global_ + T lies between), so the least VT of all is at one of two tops.
  IndexedHeap<Preference> preferred_;
  IndexedHeap<ByVirtualTime> least_served_;
  IndexedHeap<ByVirtualTime> throttled_;
};

}  // namespace fairlead
