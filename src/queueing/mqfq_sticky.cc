#include "queueing/mqfq_sticky.h"

#include <algorithm>

namespace fairlead {
namespace {

// The least charge for a flow that was never measured. With T = 0, T / 10 would be free.
constexpr Duration kMinFirstCharge = std::chrono::milliseconds(1);

}  // namespace

void MqfqSticky::add_flow(FlowId flow, double weight) {
  flows_.add(flow, weight);
}

void MqfqSticky::set_weight(FlowId flow, double weight) {
  flows_.set_weight(flows_.slot_of(flow), weight);
}

void MqfqSticky::set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) {
  const Slot slot = flows_.slot_of(flow);
  flows_[slot].max_concurrency = limit.value_or(std::numeric_limits<std::size_t>::max());
  settle(slot);
}

void MqfqSticky::remove_flow(FlowId flow) {
  leave_heaps(flows_.slot_of(flow));
  flows_.remove(flow);
  advance_global();
}

void MqfqSticky::on_arrival(Instant now, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  flows_.arrive(now, slot, invocation);
  settle(slot);
}

bool MqfqSticky::cancel(Instant now, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  if (!flows_.cancel(now, slot, invocation)) return false;
  settle(slot);
  return true;
}

std::optional<QueuePolicy::Choice> MqfqSticky::choose(Instant, const Placeable& placeable) {
  const auto slot = preferred_.find_first([&](Slot candidate) { return placeable.can_run(flows_[candidate].id); });
  if (!slot) return std::nullopt;
  Flow& flow = flows_[*slot];
  const Duration charge = flow.cost(estimate(flow));
  const InvocationId invocation = flows_.dispatch(*slot, charge);
  flow.virtual_time += charge;
  settle(*slot);
  return Choice{flow.id, invocation};
}

void MqfqSticky::on_completion(Instant now, FlowId flow_id, InvocationId invocation, Duration service) {
  const Slot slot = flows_.slot_of(flow_id);
  Flow& flow = flows_[slot];
  flow.virtual_time += flow.cost(service) - flows_.finish(now, slot, invocation);
  flows_.record_service(slot, service);
  settle(slot);
}

void MqfqSticky::on_requeue(Instant, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  flows_[slot].virtual_time -= flows_.requeue(slot, invocation);
  settle(slot);
}

void MqfqSticky::on_failed_start(Instant now, FlowId flow_id, InvocationId invocation, Duration held) {
  const Slot slot = flows_.slot_of(flow_id);
  Flow& flow = flows_[slot];
  flow.virtual_time += flow.cost(held) - flows_.finish(now, slot, invocation);
  settle(slot);
}

FlowView MqfqSticky::view(FlowId flow) const {
  const Slot slot = flows_.slot_of(flow);
  return flows_.view(slot, !flows_[slot].queue.empty() && !within_window(flows_[slot]));
}

MqfqSticky::Preference MqfqSticky::preference(const Flow& flow) {
  const auto queued = static_cast<std::uint32_t>(flow.queue.size());
  return {static_cast<std::uint64_t>(flow.in_flight.size()) << 32 | static_cast<std::uint32_t>(~queued),
          flow.virtual_time, flow.id};
}

Duration MqfqSticky::estimate(const Flow& flow) const {
  return flow.service ? *flow.service : std::max(over_run_ / 10, kMinFirstCharge);
}

// Puts a flow whose queue, VT or in-flight count changed where it belongs.
void MqfqSticky::settle(Slot slot) {
  Flow& flow = flows_[slot];
  if (!flow.runnable()) {
    leave_heaps(slot);
  } else {
    const bool joins = !preferred_.contains(slot) && !throttled_.contains(slot);
    if (joins) flow.virtual_time = std::max(flow.virtual_time, global_);
    enter_heaps(slot);
  }
  advance_global();
}

void MqfqSticky::enter_heaps(Slot slot) {
  const Flow& flow = flows_[slot];
  const ByVirtualTime by_virtual_time{flow.virtual_time, flow.id};
  if (within_window(flow)) {
    throttled_.erase(slot);
    preferred_.set(slot, preference(flow));
    least_served_.set(slot, by_virtual_time);
  } else {
    preferred_.erase(slot);
    least_served_.erase(slot);
    throttled_.set(slot, by_virtual_time);
  }
}

void MqfqSticky::leave_heaps(Slot slot) {
  preferred_.erase(slot);
  least_served_.erase(slot);
  throttled_.erase(slot);
}

// Global_VT follows the least VT upwards, and flows that come within T of it are eligible again. With no runnable flow
// it stays. Amortised: a flow is promoted at most once per time it was throttled.
void MqfqSticky::advance_global() {
  const auto& lowest = least_served_.empty() ? throttled_ : least_served_;
  if (lowest.empty()) return;
  global_ = std::max(global_, lowest.top_key().virtual_time);
  while (!throttled_.empty() && throttled_.top_key().virtual_time - global_ <= over_run_) {
    enter_heaps(throttled_.top());
  }
}

}  // namespace fairlead
