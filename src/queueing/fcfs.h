// First come, first served over all flows: the baseline every fair policy is compared with. The oldest queued invocation
// whose flow can run is next; one that cannot (its flow's reserved concurrency, no device memory) is overtaken and stays
// the oldest. No fairness: a flow that sends twice as much gets twice as much.
//
// Of each flow only the head can be next, so the order is a heap of flows by the arrival number of their heads: 10,000
// queued invocations of 3 flows are a heap of 3.
//
// Time, threads, determinism: as policy.h.
#pragma once

#include "queueing/flow_table.h"
#include "queueing/policy.h"

namespace fairlead {

class Fcfs final : public QueuePolicy {
 public:
  explicit Fcfs(const PolicyOptions& options) : flows_(options) {}

  std::string_view name() const override { return "fcfs"; }
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
  FlowView view(FlowId flow) const override { return flows_.view(flows_.slot_of(flow), false); }
  Duration global_virtual_time() const override { return Duration(0); }

 private:
  using Slot = FlowTable::Slot;

  void settle(Slot slot);

  FlowTable flows_;
  IndexedHeap<std::uint64_t> oldest_;  // runnable flows by the arrival number of their heads
};

}  // namespace fairlead
