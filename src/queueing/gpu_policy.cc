#include "queueing/gpu_policy.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {

void GpuPolicy::add_flow(FlowId flow, const FlowShare& share) {
  const Row row = flows_.add(flow, share);
  flows_[row].virtual_time = minimum_;
  on_added(row);
}

void GpuPolicy::set_share(FlowId flow, const FlowShare& share) {
  flows_.set_share(flows_.row_of(flow), share);
}

void GpuPolicy::set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) {
  const Row row = flows_.row_of(flow);
  flows_[row].max_concurrency = limit.value_or(std::numeric_limits<std::size_t>::max());
  settle(row);
}

void GpuPolicy::set_supply(FlowId flow, Supply supply) {
  const Row row = flows_.row_of(flow);
  flows_[row].supply = supply;
  settle(row);
}

void GpuPolicy::remove_flow(FlowId flow) {
  const Row row = flows_.row_of(flow);
  waiting_.erase(row);
  busy_.erase(row);
  on_removed(row);
  flows_.remove(flow);
}

void GpuPolicy::on_arrival(Instant now, FlowId flow, InvocationId invocation) {
  const Row row = flows_.row_of(flow);
  flows_.arrive(now, row, invocation);
  settle(row);
}

bool GpuPolicy::cancel(Instant now, FlowId flow, InvocationId invocation) {
  const Row row = flows_.row_of(flow);
  if (!flows_.cancel(now, row, invocation)) return false;
  settle(row);
  return true;
}

std::optional<QueuePolicy::Choice> GpuPolicy::choose(Instant now, const Placeable& placeable) {
  const auto next = pick(now, placeable);
  if (!next) return std::nullopt;
  Flow& flow = flows_[next->row];
  const Duration charge = flow.cost(flow.service.value_or(Duration(0)) + next->setup);
  const InvocationId invocation = flows_.dispatch(next->row, charge);
  flow.virtual_time += charge;
  on_begin(next->row, next->gpu);
  settle(next->row);
  return Choice{flow.id, invocation, next->gpu};
}

std::optional<FlowId> GpuPolicy::next_start(Instant, const Placeable& startable) {
  if (!startable.may_start()) return std::nullopt;
  const auto row = waiting_.find_first([&](Row candidate) { return startable.can_run(flows_[candidate].id); });
  return row ? std::optional(flows_[*row].id) : std::nullopt;
}

void GpuPolicy::on_started(FlowId flow_id, Duration cost) {
  const Row row = flows_.row_of(flow_id);
  flows_[row].virtual_time += flows_[row].cost(cost);
  settle(row);
}

std::optional<InvocationId> GpuPolicy::fail_head(Instant now, FlowId flow_id, Duration took) {
  const Row row = flows_.row_of(flow_id);
  const auto head = flows_.drop_head(now, row);
  flows_[row].virtual_time += flows_[row].cost(took);
  settle(row);
  return head;
}

void GpuPolicy::on_completion(Instant now, FlowId flow_id, InvocationId invocation, Duration service) {
  const Row row = flows_.row_of(flow_id);
  Flow& flow = flows_[row];
  const auto ended = std::find_if(flow.in_flight.begin(), flow.in_flight.end(),
                                  [&](const InFlight& running) { return running.queued.invocation == invocation; });
  FL_CHECK(ended != flow.in_flight.end(), "invocation {} is not in flight", invocation.value());
  on_answer(row, now - ended->queued.arrived);
  flow.virtual_time += flow.cost(service) - flows_.finish(now, row, invocation);
  flows_.record_service(row, service);
  settle(row);
}

void GpuPolicy::on_requeue(Instant, FlowId flow, InvocationId invocation) {
  const Row row = flows_.row_of(flow);
  flows_[row].virtual_time -= flows_.requeue(row, invocation);
  settle(row);
}

void GpuPolicy::on_failed_start(Instant now, FlowId flow_id, InvocationId invocation, Duration held) {
  const Row row = flows_.row_of(flow_id);
  Flow& flow = flows_[row];
  flow.virtual_time += flow.cost(held) - flows_.finish(now, row, invocation);
  settle(row);
}

// Puts a flow that changed where it belongs.
void GpuPolicy::settle(Row row) {
  Flow& flow = flows_[row];
  const bool waits = !flow.queue.empty() && flow.supply == Supply::kReady;
  const bool busy = waits || !flow.in_flight.empty();
  if (busy && !busy_.contains(row)) flow.virtual_time = std::max(flow.virtual_time, minimum_);
  const ByVirtualTime key{flow.virtual_time, flow.id};
  if (flow.runnable()) {
    waiting_.set(row, key);
  } else {
    waiting_.erase(row);
  }
  if (busy) {
    busy_.set(row, key);
  } else {
    busy_.erase(row);
  }
  flows_.note_contention(row);
  if (!busy_.empty()) minimum_ = std::max(minimum_, busy_.top_key().time);
}

}  // namespace fairlead
