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
  Flow& flow = flows[pick->slot];
  const Duration charged = charge(flow, pick->expected);
  const InvocationId invocation = flows.dispatch(pick->slot, charged);
  flow.virtual_time += charged;
  flow.last_turn = now;
  order->began(*pick);
  return Begun{pick->slot, invocation, pick->gpu};
}

std::optional<FlowId> FlowGroup::next_start(Instant now, const Placeable& startable) {
  std::optional<Slot> slot;
  if (starts_) {
    slot = starts_->pick_start(now, startable);
  } else if (startable.may_start()) {
    const auto pick = order->pick(now, startable);
    if (pick) slot = pick->slot;
  }
  return slot ? std::optional(flows[*slot].id) : std::nullopt;
}

Duration FlowGroup::charge(const Flow& flow, Duration service) const {
  return by_service_ ? flow.cost(by_service_->fixed_charge.value_or(service)) : Duration(0);
}

void FlowGroup::charge_start(Slot slot, Duration cost, bool is_ready) {
  if (starts_) starts_->charge_start(flows[slot], flows[slot].cost(cost), is_ready);
  order->settle(slot);
}

void FlowGroup::finish(Instant now, Slot slot, InvocationId invocation, Duration service, bool answered) {
  const InFlight over = flows.finish(now, slot, invocation);
  Flow& flow = flows[slot];
  // What it held a token for without an answer counts as it is.
  const Duration owed = answered ? charge(flow, service) : by_service_ ? flow.cost(service) : Duration(0);
  flow.virtual_time += owed - over.charged;
  if (answered) flows.record_service(slot, service);
  order->ended(slot, {now, answered, service, now - over.queued.arrived});
}

void FlowGroup::requeue(Instant now, Slot slot, InvocationId invocation) {
  flows[slot].virtual_time -= flows.requeue(slot, invocation).charged;
  order->ended(slot, {.now = now});
}

void FlowGroup::set_setup_on(Slot slot, GpuId gpu, std::optional<Duration> setup) {
  if (data_places_) data_places_->set_setup_on(slot, gpu, setup);
}

}  // namespace fairlead
