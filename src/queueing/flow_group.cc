#include "queueing/flow_group.h"

namespace fairlead {

FlowGroup::FlowGroup(const Policy& policy, const PolicyOptions& options)
    : flows(options),
      order(policy.make(flows, options)),
      by_service_(dynamic_cast<ByService*>(order.get())),
      starts_(dynamic_cast<Starts*>(order.get())),
      patient_(dynamic_cast<Patient*>(order.get())),
      data_places_(dynamic_cast<DataPlaces*>(order.get())) {}

std::optional<FlowGroup::Begun> FlowGroup::choose(Instant now, const Placeable& placeable) {
  const auto pick = order->pick(now, placeable);
  if (!pick) return std::nullopt;
  Flow& flow = flows[pick->row];
  const Duration charged = charge(flow, pick->expected);
  const InvocationId invocation = flows.dispatch(pick->row, charged);
  flow.virtual_time += charged;
  flow.last_turn = now;
  order->began(*pick);
  return Begun{pick->row, invocation, pick->gpu};
}

std::optional<FlowId> FlowGroup::next_start(Instant now, const Placeable& startable) {
  std::optional<Row> row;
  if (starts_) {
    row = starts_->pick_start(now, startable);
  } else if (startable.may_start()) {
    const auto pick = order->pick(now, startable);
    if (pick) row = pick->row;
  }
  return row ? std::optional(flows[*row].id) : std::nullopt;
}

Duration FlowGroup::charge(const Flow& flow, Duration service) const {
  return by_service_ ? flow.cost(by_service_->fixed_charge.value_or(service)) : Duration(0);
}

void FlowGroup::charge_start(Row row, Duration cost, bool is_ready) {
  if (starts_) starts_->charge_start(flows[row], flows[row].cost(cost), is_ready);
  order->settle(row);
}

void FlowGroup::finish(Instant now, Row row, InvocationId invocation, Duration service, bool answered) {
  const InFlight over = flows.finish(now, row, invocation);
  Flow& flow = flows[row];
  // What it held a slot for without an answer counts as it is.
  const Duration owed = answered ? charge(flow, service) : by_service_ ? flow.cost(service) : Duration(0);
  flow.virtual_time += owed - over.charged;
  if (answered) flows.record_service(row, service);
  order->ended(row, {now, answered, service, now - over.queued.arrived});
}

void FlowGroup::requeue(Instant now, Row row, InvocationId invocation) {
  flows[row].virtual_time -= flows.requeue(row, invocation).charged;
  order->ended(row, {.now = now});
}

void FlowGroup::set_setup_on(Row row, GpuId gpu, std::optional<Duration> setup) {
  if (data_places_) data_places_->set_setup_on(row, gpu, setup);
}

}  // namespace fairlead
