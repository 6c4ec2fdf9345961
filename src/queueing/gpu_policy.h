// A policy that chooses flow and GPU together, for work whose cost depends on where its data is: which function's
// invocation does which GPU serve next? (KaaS, section 4.1.4.) The base class keeps the books of what each flow has been
// served; a derived class says who goes where.
//
// Virtual time is GPU time as measured, loading that the invocation caused included, over the flow's weight. An invocation
// is charged its flow's mean and its set-up when it begins, put right when it ends: with several slots a flow would else
// look unserved for as long as its first invocation runs. A flow that was idle returns at the greater of its own virtual
// time and the minimum, so idling saves up nothing, and a closed loop of one invocation (idle for an instant after each)
// keeps its debt. The minimum is over flows that wait or run: a closed loop needs it to count those that run. A flow whose
// instance has yet to start counts as idle.
//
// Example: A has 300 ms, B 100 ms and works, the minimum is 100 ms. C arrives for the first time: it has 100 ms. A, idle
// meanwhile, returns: it still has 300 ms.
//
// Cost: a choice looks at every flow that waits and every GPU: 1.6 us with 32, 71 us with 1,000 (resident-window, one GPU;
// policy_bench.cc). For tens of kernel tasks, not for thousands of functions.
// Time, threads, determinism: as policy.h; integers only.
#pragma once

#include "queueing/keyed_policy.h"

namespace fairlead {

class GpuPolicy : public QueuePolicy {
 public:
  explicit GpuPolicy(const PolicyOptions& options) : options_(options), flows_(options) {}

  void add_flow(FlowId flow, const FlowShare& share) override;
  void set_share(FlowId flow, const FlowShare& share) override;
  void set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) override;
  void set_setup(FlowId, Duration) override {}  // Placeable::places says it GPU by GPU
  void set_supply(FlowId flow, Supply supply) override;
  void remove_flow(FlowId flow) override;
  void on_arrival(Instant now, FlowId flow, InvocationId invocation) override;
  bool cancel(Instant now, FlowId flow, InvocationId invocation) override;
  std::optional<Choice> choose(Instant now, const Placeable& placeable) override;
  std::optional<FlowId> next_start(Instant now, const Placeable& startable) override;
  void on_started(FlowId flow, Duration cost) override;
  std::optional<InvocationId> fail_head(Instant now, FlowId flow, Duration took) override;
  void on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) override;
  void on_requeue(Instant now, FlowId flow, InvocationId invocation) override;
  void on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held) override;
  std::optional<Instant> next_expiry() const override { return flows_.next_expiry(); }
  void expire(Instant now) override { flows_.expire(now); }
  std::size_t queued() const override { return flows_.queued(); }
  std::size_t queued(FlowId flow) const override { return flows_.queued(flow); }
  FlowView view(FlowId flow) const override { return flows_.view(flows_.row_of(flow), false); }
  Duration global_virtual_time() const override { return minimum_; }
  bool contends() const override { return flows_.contends(); }

 protected:
  using Row = FlowTable::Row;
  struct Pick {
    Row row;
    GpuId gpu;
    Duration setup;
  };

  // Who goes where. REQUIRES of what it gives: the flow waits, and the place is free.
  virtual std::optional<Pick> pick(Instant now, const Placeable& placeable) = 0;
  // A flow came or went (`row` is reused); one of its invocations begins on the GPU; one was answered so long after it
  // arrived.
  virtual void on_added(Row) {}
  virtual void on_removed(Row) {}
  virtual void on_begin(Row, GpuId) {}
  virtual void on_answer(Row, Duration /*latency*/) {}

  // Looks at the flows that wait, the least served first, until `look` says that it has seen enough.
  template <typename Look>
  void each_waiting(Look look) {
    waiting_.find_first(look);
  }

  // The least virtual time of flows that wait or run; while none does, as it was.
  Duration minimum() const { return minimum_; }

  const PolicyOptions options_;
  FlowTable flows_;

 private:
  using ByVirtualTime = ByTime<Duration>;

  void settle(Row row);

  IndexedHeap<ByVirtualTime> waiting_;  // flows with runnable work
  IndexedHeap<ByVirtualTime> busy_;     // flows with anything in flight, or queued with an instance to run it
  Duration minimum_{0};
};

}  // namespace fairlead
