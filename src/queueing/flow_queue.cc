#include "queueing/flow_queue.h"

#include <algorithm>
#include <limits>

namespace fairlead {

FlowQueue::FlowQueue(const Policy& policy, const PolicyOptions& options) : policy_(policy), groups_(policy, options) {}

// ---- flows

void FlowQueue::set_share(FlowId flow, const FlowShare& share) {
  const auto at = groups_.find(flow);
  at.group.flows.set_share(at.row, share);
  at.group.order->reweighed(at.row);
}

void FlowQueue::set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) {
  const auto at = groups_.find(flow);
  at.group.flows[at.row].max_concurrency = limit.value_or(std::numeric_limits<std::size_t>::max());
  at.group.order->settle(at.row);
}

void FlowQueue::remove_flow(FlowId flow) {
  queued_ -= groups_.queued(flow);
  groups_.remove(flow);
}

void FlowQueue::set_setup(FlowId flow, Duration setup) {
  const auto at = groups_.find(flow);
  at.group.flows[at.row].setup = setup;
  at.group.order->reweighed(at.row);
}

void FlowQueue::set_supply(FlowId flow, Supply supply) {
  const auto at = groups_.find(flow);
  at.group.flows.set_supply(at.row, supply);
  at.group.order->settle(at.row);
  groups_.settle(at.tenant);
}

void FlowQueue::set_setup_on(FlowId flow, GpuId gpu, std::optional<Duration> setup) {
  const auto at = groups_.find(flow);
  at.group.set_setup_on(at.row, gpu, setup);
}

// ---- invocations

void FlowQueue::on_arrival(Instant now, FlowId flow, InvocationId invocation) {
  const auto at = groups_.find(flow);
  at.group.flows.arrive(now, at.row, invocation);
  ++queued_;
  at.group.order->settle(at.row);
  groups_.settle(at.tenant);
}

bool FlowQueue::cancel(Instant now, FlowId flow, InvocationId invocation) {
  const auto at = groups_.find(flow);
  if (!at.group.flows.cancel(now, at.row, invocation)) return false;
  --queued_;
  at.group.order->settle(at.row);
  groups_.settle(at.tenant);
  return true;
}

std::optional<FlowQueue::Choice> FlowQueue::choose(Instant now, const Placeable& placeable) {
  const auto choice = groups_.choose(now, placeable);
  if (choice) --queued_;
  return choice;
}

FlowId FlowQueue::claimant() const {
  for (const auto& group : groups_.all()) {
    if (const FlowId claimant = group->claimant()) return claimant;
  }
  return FlowId();
}

void FlowQueue::on_started(FlowId flow, Duration cost) {
  const auto at = groups_.find(flow);
  at.group.charge_start(at.row, cost, /*is_ready=*/true);
  if (auto* tenants = groups_.tenants()) tenants->charge_start(at.tenant, cost);
  groups_.settle(at.tenant);
}

std::optional<InvocationId> FlowQueue::fail_head(Instant now, FlowId flow, Duration took) {
  const auto at = groups_.find(flow);
  const auto head = at.group.flows.drop_head(now, at.row);
  if (head) --queued_;
  at.group.charge_start(at.row, took, /*is_ready=*/false);
  if (auto* tenants = groups_.tenants()) tenants->charge_start(at.tenant, took);
  groups_.settle(at.tenant);
  return head;
}

void FlowQueue::on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) {
  const auto at = groups_.find(flow);
  at.group.finish(now, at.row, invocation, service, /*answered=*/true);
  if (auto* tenants = groups_.tenants()) tenants->end(at.tenant, invocation, service);
  groups_.settle(at.tenant);
}

void FlowQueue::on_requeue(Instant now, FlowId flow, InvocationId invocation) {
  const auto at = groups_.find(flow);
  at.group.requeue(now, at.row, invocation);
  ++queued_;
  if (auto* tenants = groups_.tenants()) tenants->end(at.tenant, invocation, Duration(0));
  groups_.settle(at.tenant);
}

void FlowQueue::on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held) {
  const auto at = groups_.find(flow);
  at.group.finish(now, at.row, invocation, held, /*answered=*/false);
  if (auto* tenants = groups_.tenants()) tenants->end(at.tenant, invocation, held);
  groups_.settle(at.tenant);
}

// ---- states

std::optional<Instant> FlowQueue::next_expiry() const {
  std::optional<Instant> next;
  for (const auto& group : groups_.all()) {
    const auto expiry = group->flows.next_expiry();
    if (expiry && (!next || *expiry < *next)) next = expiry;
  }
  return next;
}

void FlowQueue::expire(Instant now) {
  for (const auto& group : groups_.all()) group->flows.expire(now);
}

FlowView FlowQueue::view(FlowId flow) const {
  const auto at = groups_.find(flow);
  FlowView view = at.group.flows.view(at.row, at.group.is_throttled(at.row));
  // As far ahead of the node's as of its tenant's.
  if (groups_.tenants() != nullptr) view.virtual_time += groups_.global_virtual_time() - at.group.global_virtual_time();
  return view;
}

FlowState FlowQueue::state(FlowId flow) const {
  const auto at = groups_.find(flow);
  return at.group.flows.state(at.row, at.group.is_throttled(at.row));
}

}  // namespace fairlead
