// The flows that one order puts in order, all of them or those of a tenant: their books and the order, and what is charged
// for their work. The queue's (flow_queue.h) and nobody else's.
//
// Threads, determinism: as flow_queue.h.
#pragma once

#include <memory>

#include "decide/queueing/order.h"

namespace fairlead {

class FlowGroup {
 public:
  using Row = FlowTable::Row;

  FlowGroup(const Policy& policy, const PolicyOptions& options);

  FlowTable flows;
  const std::unique_ptr<Order> order;

  // What begins now: it is out of its queue, and charged. Empty: nothing can.
  struct Begun {
    Row row;
    InvocationId invocation;
    GpuId gpu;
  };
  std::optional<Begun> choose(Instant now, const Placeable& placeable);
  // The head of the flow's queue, out of its turn and without a charge. Empty: nothing is queued, or the flow is at its limit.
  std::optional<InvocationId> take_head(Row row);
  std::optional<FlowId> next_start(Instant now, const Placeable& startable);

  // A start of the flow took so long, or kept slots from others for so long.
  void charge_start(Row row, Duration cost, bool is_ready);
  // An invocation is over, and its flow owes `service`, less what its request entitled it to; it goes back to the head of its queue,
  // and owes nothing.
  struct Over {
    Duration service{0};
    bool answered = false;
    Duration entitled{0};  // at most `service`
  };
  void finish(Instant now, Row row, InvocationId invocation, const Over& over);
  void requeue(Instant now, Row row, InvocationId invocation);

  void set_setup_on(Row row, GpuId gpu, std::optional<Duration> setup);
  std::optional<Instant> next_chance() const { return patient_ ? patient_->next_chance() : std::nullopt; }
  FlowId claimant() const { return starts_ ? starts_->claimant() : FlowId(); }
  Duration global_virtual_time() const { return by_service_ ? by_service_->global_virtual_time() : Duration(0); }
  bool is_throttled(Row row) const { return by_service_ && by_service_->is_throttled(flows[row]); }

 private:
  void tell_family(Row row);
  Duration charge(const Flow& flow, Duration service) const;
  // The clock does not follow a flow in seats: for these it ends up at the end of the window at most, or where it is.
  Duration charged_in_seats(const Flow& flow, Duration owed) const;

  // The order, where it is one of these as well.
  ByService* const by_service_;
  Starts* const starts_;
  Patient* const patient_;
  DataPlaces* const data_places_;
};

}  // namespace fairlead
