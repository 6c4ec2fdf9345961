// An order that chooses flow and GPU together, for work whose cost depends on where its data is: which function's
// invocation does which GPU serve next? (KaaS, section 4.1.4.) The base class knows what each flow has been
// served; a derived class says who goes where.
//
// Virtual time is GPU time as measured, loading that the invocation caused included, over the flow's weight. An invocation
// is charged its flow's mean and its set-up when it begins, put right when it ends: with several slots a flow would else
// look unserved for as long as its first invocation runs. A flow that was idle returns at the greater of its own virtual
// time and the minimum, so idling saves up nothing, and a closed loop of one invocation (idle for an instant after each)
// keeps its debt. The minimum is over flows that wait or run: a closed loop needs it to count those that run. A flow whose
// instance has yet to start counts as idle; what runs in seats takes nobody's turn, and does not count.
//
// Example: A has 300 ms, B 100 ms and works, the minimum is 100 ms. C arrives for the first time: it has 100 ms. A, idle
// meanwhile, returns: it still has 300 ms.
//
// Cost: a choice looks at every flow that waits and every GPU: 1.6 us with 32, 71 us with 1,000 (resident-window, one GPU;
// policy_bench.cc). For tens of kernel tasks, not for thousands of functions.
// Time, threads, determinism: as flow_queue.h; integers only.
#pragma once

#include "decide/queueing/keyed_order.h"
#include "decide/queueing/policy.h"

namespace fairlead {

class GpuOrder : public Order, public ByService, public Starts {
 public:
  explicit GpuOrder(FlowTable& flows) : Order(flows) {}

  void add(Row row) override { flows_[row].virtual_time = minimum_; }
  void settle(Row row) final;
  void reweighed(Row) override {}  // a weight counts from the next charge on, and Placeable::places says the set-up
  void remove(Row row) override;
  std::optional<Row> pick_start(Instant now, const Placeable& startable) override;
  void charge_start(Flow& flow, Duration cost, bool) override { flow.virtual_time += cost; }

  // The least virtual time of flows that wait or run; while none does, as it was.
  Duration global_virtual_time() const override { return minimum_; }

 protected:
  // A pick, which is charged its flow's mean and the set-up.
  Pick pick_of(Row row, GpuId gpu, Duration setup) const {
    return {row, gpu, flows_[row].service.value_or(Duration(0)) + setup};
  }

  // Looks at the flows that wait, the least served first, until `look` says that it has seen enough.
  template <typename Look>
  void each_waiting(Look look) {
    waiting_.find_first(look);
  }

 private:
  using ByVirtualTime = ByTime<Duration>;

  IndexedHeap<ByVirtualTime> waiting_;  // flows with runnable work
  IndexedHeap<ByVirtualTime> busy_;     // flows with anything in a slot, or queued with an instance to run it
  Duration minimum_{0};
};

}  // namespace fairlead
