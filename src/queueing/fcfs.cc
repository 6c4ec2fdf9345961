#include "queueing/fcfs.h"

namespace fairlead {

void Fcfs::add_flow(FlowId flow, double weight) {
  flows_.add(flow, weight);
}

void Fcfs::set_weight(FlowId flow, double weight) {
  flows_.set_weight(flows_.slot_of(flow), weight);
}

void Fcfs::set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) {
  const Slot slot = flows_.slot_of(flow);
  flows_[slot].max_concurrency = limit.value_or(std::numeric_limits<std::size_t>::max());
  settle(slot);
}

void Fcfs::remove_flow(FlowId flow) {
  oldest_.erase(flows_.slot_of(flow));
  flows_.remove(flow);
}

void Fcfs::on_arrival(Instant now, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  flows_.arrive(now, slot, invocation);
  settle(slot);
}

bool Fcfs::cancel(Instant now, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  if (!flows_.cancel(now, slot, invocation)) return false;
  settle(slot);
  return true;
}

std::optional<QueuePolicy::Choice> Fcfs::choose(Instant, const Placeable& placeable) {
  const auto slot = oldest_.find_first([&](Slot candidate) { return placeable.can_run(flows_[candidate].id); });
  if (!slot) return std::nullopt;
  const InvocationId invocation = flows_.dispatch(*slot, Duration(0));
  settle(*slot);
  return Choice{flows_[*slot].id, invocation};
}

void Fcfs::on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) {
  const Slot slot = flows_.slot_of(flow);
  flows_.finish(now, slot, invocation);
  flows_.record_service(slot, service);
  settle(slot);
}

void Fcfs::on_requeue(Instant, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  flows_.requeue(slot, invocation);
  settle(slot);
}

void Fcfs::on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration) {
  const Slot slot = flows_.slot_of(flow);
  flows_.finish(now, slot, invocation);
  settle(slot);
}

void Fcfs::settle(Slot slot) {
  const Flow& flow = flows_[slot];
  if (flow.runnable()) {
    oldest_.set(slot, flow.queue.front().sequence);
  } else {
    oldest_.erase(slot);
  }
}

}  // namespace fairlead
