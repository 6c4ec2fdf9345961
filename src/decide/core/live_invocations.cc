#include "decide/core/live_invocations.h"

#include "base/check.h"

namespace fairlead {

void LiveInvocations::arrive(Instant now, InvocationId id, FlowId flow, TenantId tenant, Instant deadline) {
  LiveInvocation arrived;
  arrived.flow = flow;
  arrived.tenant = tenant;
  arrived.arrived = now;
  arrived.deadline = deadline;
  FL_CHECK(all_.try_emplace(id, arrived).second, "invocation {} arrived twice", id.value());
  deadlines_.add(id, deadline);
  const auto place = static_cast<std::size_t>(tenant.value());
  if (place >= of_.size()) of_.resize(place + 1);
  ++of_[place];
  ++counts_.arrived;
}

void LiveInvocations::deliver(Instant now, InvocationId id, Instant run_deadline) {
  LiveInvocation& delivered = all_.at(id);
  delivered.delivered = now;
  delivered.running = true;
  delivered.run_deadline = run_deadline;
  deadlines_.forget(id, delivered.deadline);
  if (delivered.start == StartKind::kDeviceWarm) ++counts_.device_warm_starts;
  if (delivered.start == StartKind::kHostWarm) ++counts_.host_warm_starts;
}

void LiveInvocations::requeue(InvocationId id) {
  LiveInvocation& queued = all_.at(id);
  queued.instance = InstanceId();
  queued.start = StartKind::kCold;
}

void LiveInvocations::complete(Instant now, InvocationId id, OutcomeKind outcome, Duration service, Actions& out) {
  if (!all_.at(id).expired) append_completion(now, id, outcome, service, out);
  forget(id);
}

void LiveInvocations::answer_early(Instant now, InvocationId id, OutcomeKind outcome, Duration service, Actions& out) {
  LiveInvocation& answered = all_.at(id);
  answered.answered = true;
  answered.stated = service;
  append_completion(now, id, outcome, service, out);
}

void LiveInvocations::expire(Instant now, InvocationId id, Actions& out) {
  append_completion(now, id, OutcomeKind::kExpired, Duration(0), out);
  all_.at(id).expired = true;
}

void LiveInvocations::charge(InvocationId id, Duration service, Actions& out) {
  const LiveInvocation& charged = all_.at(id);
  out.push_back(Charge{id, charged.flow, service, service - charged.stated, charged.owed});
  forget(id);
}

void LiveInvocations::forget(InvocationId id) {
  const LiveInvocation& over = all_.at(id);
  deadlines_.forget(id, over.deadline);
  --of_[static_cast<std::size_t>(over.tenant.value())];
  all_.erase(id);
}

void LiveInvocations::append_completion(Instant now, InvocationId id, OutcomeKind outcome, Duration service,
                                        Actions& out) {
  const LiveInvocation& over = all_.at(id);
  Complete done{id, over.flow, outcome, over.start, now - over.arrived, Duration(0), service};
  if (over.instance) {
    done.queue_time = over.dispatched - over.arrived;
    done.start_time = (over.running ? over.delivered : now) - over.dispatched;
    done.instance_start = over.instance_start;
  }
  done.owed = over.owed;
  const bool answered = outcome == OutcomeKind::kSuccess || outcome == OutcomeKind::kFunctionError;
  ++(answered ? counts_.completed : counts_.failed);
  out.push_back(done);
}

}  // namespace fairlead
