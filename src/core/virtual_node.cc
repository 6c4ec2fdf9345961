#include "core/virtual_node.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {

VirtualNode::VirtualNode(CoreOptions options, std::unique_ptr<QueuePolicy> policy, InstanceModel& model)
    : core_(options, std::move(policy)), model_(model) {}

void VirtualNode::schedule(Instant at, Event event) {
  FL_CHECK(at >= now_, "{} ns is in the past", at.time_since_epoch().count());
  events_.emplace(std::pair(at, next_event_++), std::move(event));
}

Result<InvocationId> VirtualNode::arrive(FlowId flow) {
  const InvocationId invocation(next_invocation_++);
  Status accepted;
  apply([&](Actions& out) { accepted = core_.arrive(now_, invocation, flow, out); });
  if (!accepted) return fail(accepted.error());
  return invocation;
}

bool VirtualNode::step() {
  const auto next = next_instant();
  if (!next) return false;
  now_ = std::max(now_, *next);
  // Deadlines first: an answer at its very deadline is too late.
  if (const auto wakeup = core_.next_wakeup(); wakeup && *wakeup <= now_) {
    apply([&](Actions& out) { core_.wake(now_, out); });
    return true;
  }
  const auto first = events_.begin();
  const Event event = std::move(first->second);
  events_.erase(first);
  event();
  return true;
}

void VirtualNode::run() {
  while (step()) {
  }
}

void VirtualNode::run_until(Instant end) {
  for (auto next = next_instant(); next && *next <= end; next = next_instant()) step();
  now_ = std::max(now_, end);
}

std::optional<Instant> VirtualNode::next_instant() const {
  std::optional<Instant> next = core_.next_wakeup();
  if (!events_.empty() && (!next || events_.begin()->first.first < *next)) next = events_.begin()->first.first;
  return next;
}

void VirtualNode::carry_out(const Actions& actions) {
  for (const Action& action : actions) {
    if (observer_) observer_(action);
    std::visit([&](const auto& a) { perform(a); }, action);
  }
}

void VirtualNode::perform(const StartInstance& action) {
  flow_of_[action.instance] = action.flow;
  const auto memory = model_.memory(action.flow);
  if (memory && devices_.contains(action.gpu)) {
    Holding& holding = holdings_[action.instance];
    holding.gpu = action.gpu;
    holding.size = *memory;
  }
  const InstanceModel::Start start = model_.start(action);
  const InstanceId instance = action.instance;
  const auto holding = holdings_.find(instance);
  if (start.allocations > 0 && holding != holdings_.end()) {
    holding->second.start = {start.end, start.after / start.allocations, start.allocations};
    schedule(now_ + holding->second.start.after, [this, instance] { allocate_next(instance); });
    return;
  }
  switch (start.end) {
    case InstanceModel::StartEnd::kReady:
      schedule(now_ + start.after,
               [this, instance] { apply([&](Actions& out) { core_.instance_ready(now_, instance, out); }); });
      break;
    case InstanceModel::StartEnd::kExits: instance_gone_after(start.after, instance); break;
    case InstanceModel::StartEnd::kHangs: break;
  }
}

void VirtualNode::perform(const StopInstance& action) {
  instance_gone_after(Duration(0), action.instance);
}

void VirtualNode::perform(const Deliver& action) {
  const auto flow = flow_of_.find(action.instance);
  FL_CHECK(flow != flow_of_.end(), "instance {} has gone", action.instance.value());
  const InstanceModel::Run run = model_.run(flow->second, action);
  const auto holding = holdings_.find(action.instance);
  if (holding == holdings_.end()) return start_run(action.instance, action.invocation, run);
  holding->second.waiting = {action.invocation, run};
  run_if_resident(action.instance);
}

void VirtualNode::start_run(InstanceId instance, InvocationId invocation, const InstanceModel::Run& run) {
  schedule(now_ + run.after, [this, run, instance, invocation] { finish_run(instance, invocation, run); });
}

void VirtualNode::finish_run(InstanceId instance, InvocationId invocation, const InstanceModel::Run& run) {
  if (run.end == InstanceModel::RunEnd::kHangs) return;
  if (run.end == InstanceModel::RunEnd::kExits) {
    instance_gone_after(Duration(0), instance);
    return;
  }
  const bool is_error = run.end == InstanceModel::RunEnd::kReportsError;
  report(instance);  // first, as the node does: what follows from the answer knows what the instance holds
  if (run.work_after > Duration(0)) {
    const Duration so_far = std::min(run.gpu_time.value_or(run.after), run.after);
    apply([&](Actions& out) { core_.answered_early(now_, invocation, is_error, so_far, out); });
    schedule(now_ + run.work_after, [this, instance, run] {
      apply([&](Actions& out) { core_.work_ended(now_, instance, run.gpu_time, out); });
    });
  } else {
    apply([&](Actions& out) { core_.answered(now_, invocation, is_error, run.gpu_time, out); });
  }
  if (!run.return_after) return;
  schedule(now_ + *run.return_after,
           [this, instance] { apply([&](Actions& out) { core_.instance_idle(now_, instance, out); }); });
}

void VirtualNode::instance_gone_after(Duration delay, InstanceId instance) {
  schedule(now_ + delay, [this, instance] {
    flow_of_.erase(instance);
    release_memory(instance);
    apply([&](Actions& out) { core_.instance_gone(now_, instance, out); });
  });
}

}  // namespace fairlead
