#include "decide/core/runs.h"

#include <algorithm>
#include <utility>

namespace fairlead {
namespace {

// A slot held is charged at least time held / kMinChargeDivisor, however little of the GPU was used.
constexpr int kMinChargeDivisor = 10;

// A load that lasts so many times as long as it should, and at least kLeastPatience, may wait for what never comes: an input that
// nobody writes, a server that starts again and again. Others' loads wait for it no longer.
constexpr int kLoadsOfPatience = 4;
constexpr Duration kLeastPatience = std::chrono::seconds(2);

// GPU time that the request with which its instance started has promised an invocation since its delivery, and that was paid for at
// admission.
Duration promised(const Instance* instance, const LiveInvocation& invocation, Instant now) {
  if (instance == nullptr || !instance->terms.is_entitled) return Duration(0);
  return (now - invocation.delivered) * instance->terms.request_percent / 100;
}

}  // namespace

Duration bounded_use(std::optional<Duration> reported, Duration held) {
  return reported ? std::clamp(*reported, held / kMinChargeDivisor, held) : held;
}

void Runs::begin(Instant now, Instance& instance, Actions& out) {
  LiveInvocation& invocation = tables_.invocations.at(instance.bound);
  const Instant timeout = now + tables_.functions.at(instance.flow).spec.timeout;
  const Instant deadline = std::min(timeout, invocation.deadline);
  tables_.invocations.deliver(now, instance.bound, deadline);
  tables_.pool.take(instance, InstanceEvent::kDelivered);
  instance.last_used = now;
  const bool loads = instance.life.loads();
  const Instant load_deadline = now + std::max(kLoadsOfPatience * instance.reload, kLeastPatience);
  keeper_.set_deadline(instance.id, loads ? std::min(deadline, load_deadline) : deadline);
  if (!loads) lanes_.begin(now, instance);
  if (invocation.start == StartKind::kCold) invocation.instance_start = instance.start_took;
  out.push_back(Deliver{instance.bound, instance.id, instance.gpu, invocation.start, deadline});
}

void Runs::loaded(Instant now, Instance& instance) {
  tables_.pool.take(instance, InstanceEvent::kLoaded);
  keeper_.set_deadline(instance.id, tables_.invocations.at(instance.bound).run_deadline);
  lanes_.begin(now, instance);
}

// It says nothing of what running together costs: the lanes are not told that it computes.
bool Runs::outlasts_load(Instant now, Instance& instance) {
  if (!instance.life.loads()) return false;
  const Instant deadline = tables_.invocations.at(instance.bound).run_deadline;
  if (deadline <= now) return false;
  tables_.pool.take(instance, InstanceEvent::kLoaded);
  keeper_.set_deadline(instance.id, deadline);
  ++loads_given_up_;
  return true;
}

void Runs::answer_early(Instant now, InvocationId id, bool is_error, Duration gpu_time, Actions& out) {
  const Duration held = now - tables_.invocations.at(id).delivered;
  tables_.invocations.answer_early(now, id, is_error ? OutcomeKind::kFunctionError : OutcomeKind::kSuccess,
                                   bounded_use(gpu_time, held), out);
}

void Runs::end(Instant now, InvocationId id, OutcomeKind outcome, std::optional<Duration> gpu_time, Actions& out) {
  lanes_.end(now, id, outcome == OutcomeKind::kSuccess);
  const Duration service = charge(now, id, gpu_time);
  if (tables_.invocations.at(id).answered) {
    tables_.invocations.charge(id, service, out);
  } else {
    tables_.invocations.complete(now, id, outcome, service, out);
  }
}

Duration Runs::charge(Instant now, InvocationId id, std::optional<Duration> gpu_time) {
  LiveInvocation& invocation = tables_.invocations.at(id);
  Duration service = bounded_use(gpu_time, now - invocation.delivered);
  CoreFunction* function = tables_.functions.find(invocation.flow);
  if (function == nullptr) return service;  // removed meanwhile
  const Duration paid = std::min(service, promised(tables_.pool.find(invocation.instance), invocation, now));
  invocation.owed = std::exchange(debtor(tables_, invocation.flow)->owed, Duration(0));
  if (const Instance* ran_on = tables_.pool.find(invocation.instance)) {
    function->slice_times.learn_run(tables_.slices.of(ran_on->gpu), service);
  }
  service += invocation.owed;
  tables_.queue->on_completion(now, invocation.flow, id, service, paid);
  return service;
}

}  // namespace fairlead
