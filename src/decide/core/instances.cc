#include <vector>

#include "base/check.h"
#include "decide/core/seats.h"

namespace fairlead {
namespace {

// A slot held is charged at least time held / kMinChargeDivisor, however little of the GPU was used.
constexpr int kMinChargeDivisor = 10;

}  // namespace

Duration bounded_use(std::optional<Duration> reported, Duration held) {
  return reported ? std::clamp(*reported, held / kMinChargeDivisor, held) : held;
}

void Core::State::ready(Instant now, InstanceId id, Actions& out) {
  Instance* instance = pool.find(id);
  if (instance == nullptr || !instance->life.starts()) return;
  instance->start_took = now - instance->last_used;
  learn_cold_start(instance->flow, instance->start_took);
  residency.ready(id);
  Function* const function = functions.find(instance->flow);
  if (function != nullptr && instance->terms.is_seated) function->seat_retries.ready();
  if (instance->bound) {
    serve(now, *instance, out);
    return;
  }
  deadlines.clear(id);
  const bool unawaited = instance->life.phase() == InstanceLife::Phase::kPreparing && queued(instance->flow) == 0;
  pool.take(*instance, unawaited ? InstanceEvent::kReadyUnawaited : InstanceEvent::kReady);
  residency.started(now, id);
  count_memory(*instance);
  note_setup(instance->flow);
  note_supply(instance->flow);
  const bool is_charged = !instance->terms.is_seated && functions.contains(instance->flow);
  if (is_charged) policy->on_started(instance->flow, instance->idled);
  dispatch(now, out);
}

void Core::State::gone(Instant now, InstanceId id, Actions& out) {
  residency.gone(id);  // also one that was stopped: its memory is free from here on
  if (const Instance* instance = pool.find(id)) {
    Seats{*this, now, out}.note_failure(*instance);
    fail_start(now, *instance, out);
    end_bound(now, *instance, OutcomeKind::kStartFailed, OutcomeKind::kCrashed, out);
    forget(id);
  }
  dispatch(now, out);
}

void Core::State::answered(Instant now, InvocationId id, bool is_error, std::optional<Duration> gpu_time,
                           Actions& out) {
  const Invocation* invocation = invocations.find(id);
  if (invocation == nullptr || !invocation->running || invocation->answered) return;
  Instance* instance = pool.find(invocation->instance);
  FL_CHECK(instance != nullptr && instance->bound == id, "invocation {}", id.value());
  complete_run(now, id, is_error ? OutcomeKind::kFunctionError : OutcomeKind::kSuccess, gpu_time, out);
  if (Function* function = functions.find(instance->flow)) function->seat_retries.served();
  end_run(now, *instance, out);
}

// The invocation stays where it is: bound to its instance, in flight in its flow. Only its Complete goes out.
void Core::State::answered_early(Instant now, InvocationId id, bool is_error, Duration gpu_time, Actions& out) {
  Invocation* invocation = invocations.find(id);
  if (invocation == nullptr || !invocation->running || invocation->answered) return;
  pool.take(*pool.find(invocation->instance), InstanceEvent::kAnswered);
  invocation->answered = true;
  if (Function* function = functions.find(invocation->flow)) function->seat_retries.served();
  invocation->stated = bounded_use(gpu_time, now - invocation->delivered);
  append_completion(now, id, is_error ? OutcomeKind::kFunctionError : OutcomeKind::kSuccess, invocation->stated, out);
}

void Core::State::work_ended(Instant now, InstanceId id, std::optional<Duration> gpu_time, Actions& out) {
  Instance* instance = pool.find(id);
  if (instance == nullptr || !instance->life.works()) return;
  const bool asked = instance->life.has_asked();
  complete_run(now, instance->bound, OutcomeKind::kSuccess, gpu_time, out);
  end_run(now, *instance, out);
  if (asked) idle(now, id, out);
}

// What was bound to the instance is over: its slot is free, and it may take the next.
void Core::State::end_run(Instant now, Instance& instance, Actions& out) {
  if (instance.life.retires()) {
    const bool serves = instance.on->serves;
    stop(now, instance.id, serves ? StopReason::kFunctionChanged : StopReason::kGpuDrained, out);
  } else if (!policy->policy().keeps_instances) {
    stop(now, instance.id, StopReason::kEvicted, out);
  } else {
    pool.release(instance);
    note_setup(instance.flow);
    residency.rest(now, instance.id);
    count_memory(instance);
    instance.last_used = now;
    deadlines.set(instance.id, now + options.return_deadline);
  }
  dispatch(now, out);
}

void Core::State::idle(Instant now, InstanceId id, Actions& out) {
  Instance* instance = pool.find(id);
  if (instance == nullptr) return;
  switch (instance->life.phase()) {
    case InstanceLife::Phase::kReturningChosen: return serve(now, *instance, out);
    case InstanceLife::Phase::kReturning: deadlines.clear(id); [[fallthrough]];
    case InstanceLife::Phase::kWorking:
      return pool.take(*instance, InstanceEvent::kAsked);  // idle when its work has ended
    default: return;
  }
}

void Core::State::expire_deadlines(Instant now, Actions& out) {
  while (!deadlines.empty() && deadlines.next() <= now) {
    Instance& instance = *pool.find(deadlines.first());
    if (outlasts_load(now, instance)) continue;
    const bool starting = instance.life.starts();
    out.push_back(StopInstance{instance.id, starting ? StopReason::kStartFailed : StopReason::kTimeout});
    residency.stopping(now, instance.id);
    Seats{*this, now, out}.note_failure(instance);
    fail_start(now, instance, out);
    end_bound(now, instance, OutcomeKind::kStartFailed, OutcomeKind::kTimeout, out);
    forget(instance.id);
  }
}

void Core::State::end_bound(Instant now, const Instance& instance, OutcomeKind if_starting, OutcomeKind if_running,
                            Actions& out) {
  if (!instance.bound) return;
  const InvocationId id = instance.bound;
  const Invocation& invocation = invocations.at(id);
  if (invocation.running) {
    complete_run(now, id, if_running, std::nullopt, out);
  } else if (instance.returning()) {
    requeue(now, id, out);
  } else {
    policy->on_failed_start(now, invocation.flow, id, now - invocation.dispatched);
    complete(now, id, if_starting, Duration(0), out);
  }
}

void Core::State::requeue(Instant now, InvocationId id, Actions& out) {
  Invocation& invocation = invocations.at(id);
  if (invocation.expired) {  // its flow pays for the slot that it held, as for a start that failed
    policy->on_failed_start(now, invocation.flow, id, now - invocation.dispatched);
    invocations.erase(id);
    return;
  }
  policy->on_requeue(now, invocation.flow, id);
  note_call(invocation.flow);
  invocation.instance = InstanceId();
  invocation.start = StartKind::kCold;
  limit_concurrency(now, invocation.flow, out);
}

void Core::State::retire_instances(Instant now, FlowId flow, Actions& out) {
  const std::vector<Instance*> all = pool.of_flow(flow);  // a copy: stop() changes it
  for (Instance* instance : all) {
    if (instance->life.holds_slot()) {
      pool.take(*instance, InstanceEvent::kRetired);
    } else {
      stop(now, instance->id, StopReason::kFunctionChanged, out);
    }
  }
  note_supply(flow);
}

// A function that may not run at all keeps nothing waiting.
void Core::State::limit_concurrency(Instant now, FlowId flow, Actions& out) {
  const auto& limit = functions.at(flow).spec.max_concurrency;
  policy->set_max_concurrency(flow, limit);
  if (limit == 0u) complete_queued(now, flow, OutcomeKind::kCancelled, out);
}

void Core::State::evict(Instant now, InstanceId id, Actions& out) {
  stop(now, id, StopReason::kEvicted, out);
  ++counters.evictions;
}

void Core::State::stop(Instant now, InstanceId id, StopReason reason, Actions& out) {
  out.push_back(StopInstance{id, reason});
  residency.stopping(now, id);
  forget(id);
}

void Core::State::forget(InstanceId id) {
  deadlines.forget(id);
  const FlowId flow = pool.find(id)->flow;
  pool.remove(id);
  note_setup(flow);
  note_supply(flow);
}

}  // namespace fairlead
