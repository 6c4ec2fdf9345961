#include "queueing/gpu_policy.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {

void GpuPolicy::add_flow(FlowId flow, const FlowShare& share) {
  const Slot slot = flows_.add(flow, share);
  flows_[slot].virtual_time = minimum_;
  on_added(slot);
}

void GpuPolicy::set_share(FlowId flow, const FlowShare& share) {
  flows_.set_share(flows_.slot_of(flow), share);
}

void GpuPolicy::set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) {
  const Slot slot = flows_.slot_of(flow);
  flows_[slot].max_concurrency = limit.value_or(std::numeric_limits<std::size_t>::max());
  settle(slot);
}

void GpuPolicy::set_supply(FlowId flow, Supply supply) {
  const Slot slot = flows_.slot_of(flow);
  flows_[slot].supply = supply;
  settle(slot);
}

void GpuPolicy::remove_flow(FlowId flow) {
  const Slot slot = flows_.slot_of(flow);
  waiting_.erase(slot);
  busy_.erase(slot);
  on_removed(slot);
  flows_.remove(flow);
}

void GpuPolicy::on_arrival(Instant now, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  flows_.arrive(now, slot, invocation);
  settle(slot);
}

bool GpuPolicy::cancel(Instant now, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  if (!flows_.cancel(now, slot, invocation)) return false;
  settle(slot);
  return true;
}

std::optional<QueuePolicy::Choice> GpuPolicy::choose(Instant now, const Placeable& placeable) {
  const auto next = pick(now, placeable);
  if (!next) return std::nullopt;
  Flow& flow = flows_[next->slot];
  const Duration charge = flow.cost(flow.service.value_or(Duration(0)) + next->setup);
  const InvocationId invocation = flows_.dispatch(next->slot, charge);
  flow.virtual_time += charge;
  on_begin(next->slot, next->gpu);
  settle(next->slot);
  return Choice{flow.id, invocation, next->gpu};
}

std::optional<FlowId> GpuPolicy::next_start(Instant, const Placeable& startable) {
  if (!startable.may_start()) return std::nullopt;
  const auto slot = waiting_.find_first([&](Slot candidate) { return startable.can_run(flows_[candidate].id); });
  return slot ? std::optional(flows_[*slot].id) : std::nullopt;
}

void GpuPolicy::on_started(FlowId flow_id, Duration cost) {
  const Slot slot = flows_.slot_of(flow_id);
  flows_[slot].virtual_time += flows_[slot].cost(cost);
  settle(slot);
}

std::optional<InvocationId> GpuPolicy::fail_head(Instant now, FlowId flow_id, Duration took) {
  const Slot slot = flows_.slot_of(flow_id);
  const auto head = flows_.drop_head(now, slot);
  flows_[slot].virtual_time += flows_[slot].cost(took);
  settle(slot);
  return head;
}

void GpuPolicy::on_completion(Instant now, FlowId flow_id, InvocationId invocation, Duration service) {
  const Slot slot = flows_.slot_of(flow_id);
  Flow& flow = flows_[slot];
  const auto ended = std::find_if(flow.in_flight.begin(), flow.in_flight.end(),
                                  [&](const InFlight& running) { return running.queued.invocation == invocation; });
  FL_CHECK(ended != flow.in_flight.end(), "invocation {} is not in flight", invocation.value());
  on_answer(slot, now - ended->queued.arrived);
  flow.virtual_time += flow.cost(service) - flows_.finish(now, slot, invocation);
  flows_.record_service(slot, service);
  settle(slot);
}

void GpuPolicy::on_requeue(Instant, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  flows_[slot].virtual_time -= flows_.requeue(slot, invocation);
  settle(slot);
}

void GpuPolicy::on_failed_start(Instant now, FlowId flow_id, InvocationId invocation, Duration held) {
  const Slot slot = flows_.slot_of(flow_id);
  Flow& flow = flows_[slot];
  flow.virtual_time += flow.cost(held) - flows_.finish(now, slot, invocation);
  settle(slot);
}

// Puts a flow that changed where it belongs.
void GpuPolicy::settle(Slot slot) {
  Flow& flow = flows_[slot];
  const bool waits = !flow.queue.empty() && flow.supply == Supply::kReady;
  const bool busy = waits || !flow.in_flight.empty();
  if (busy && !busy_.contains(slot)) flow.virtual_time = std::max(flow.virtual_time, minimum_);
  const ByVirtualTime key{flow.virtual_time, flow.id};
  if (flow.runnable()) {
    waiting_.set(slot, key);
  } else {
    waiting_.erase(slot);
  }
  if (busy) {
    busy_.set(slot, key);
  } else {
    busy_.erase(slot);
  }
  flows_.note_contention(slot);
  if (!busy_.empty()) minimum_ = std::max(minimum_, busy_.top_key().time);
}

}  // namespace fairlead
