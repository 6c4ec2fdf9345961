#include <vector>

#include "base/check.h"
#include "decide/core/seats.h"

namespace fairlead {

void Core::State::ready(Instant now, InstanceId id, Actions& out) {
  Instance* instance = tables.pool.find(id);
  if (instance == nullptr || !instance->life.starts()) return;
  instance->start_took = now - instance->last_used;
  CoreFunction* const function = tables.functions.find(instance->flow);
  if (function != nullptr) {
    function->cold_start.learn(instance->start_took);
    function->slice_times.learn_start(tables.slices.of(instance->gpu), instance->start_took);
  }
  residency.ready(id);
  if (function != nullptr && instance->terms.is_seated) function->seat_retries.ready();
  if (instance->bound) {
    serve(now, *instance, out);
    return;
  }
  keeper.clear_deadline(id);
  const bool unawaited =
      instance->life.phase() == InstanceLife::Phase::kPreparing && tables.queue->queued(instance->flow) == 0;
  tables.pool.take(*instance, unawaited ? InstanceEvent::kReadyUnawaited : InstanceEvent::kReady);
  instance->idle_since = now;
  residency.started(now, id);
  keeper.count_memory(*instance);
  news.note_setup(instance->flow);
  news.note_supply(instance->flow);
  const bool is_charged = !instance->terms.is_seated && tables.functions.contains(instance->flow);
  if (is_charged) tables.queue->on_started(instance->flow, instance->idled);
  dispatch(now, out);
}

void Core::State::gone(Instant now, InstanceId id, Actions& out) {
  residency.gone(id);  // also one that was stopped: its memory is free from here on
  if (const Instance* instance = tables.pool.find(id)) {
    Seats{*this, now, out}.note_failure(*instance);
    fail_start(now, *instance, out);
    end_bound(now, *instance, OutcomeKind::kStartFailed, OutcomeKind::kCrashed, out);
    keeper.forget(id);
  }
  dispatch(now, out);
}

void Core::State::answered(Instant now, InvocationId id, bool is_error, std::optional<Duration> gpu_time,
                           Actions& out) {
  const LiveInvocation* invocation = tables.invocations.find(id);
  if (invocation == nullptr || !invocation->running || invocation->answered) return;
  Instance* instance = tables.pool.find(invocation->instance);
  FL_CHECK(instance != nullptr && instance->bound == id, "invocation {}", id.value());
  runs.end(now, id, is_error ? OutcomeKind::kFunctionError : OutcomeKind::kSuccess, gpu_time, out);
  if (CoreFunction* function = tables.functions.find(instance->flow)) function->seat_retries.served();
  end_run(now, *instance, out);
}

// The invocation stays where it is: bound to its instance, in flight in its flow. Only its Complete goes out.
void Core::State::answered_early(Instant now, InvocationId id, bool is_error, Duration gpu_time, Actions& out) {
  LiveInvocation* invocation = tables.invocations.find(id);
  if (invocation == nullptr || !invocation->running || invocation->answered) return;
  tables.pool.take(*tables.pool.find(invocation->instance), InstanceEvent::kAnswered);
  if (CoreFunction* function = tables.functions.find(invocation->flow)) function->seat_retries.served();
  runs.answer_early(now, id, is_error, gpu_time, out);
}

void Core::State::work_ended(Instant now, InstanceId id, std::optional<Duration> gpu_time, Actions& out) {
  Instance* instance = tables.pool.find(id);
  if (instance == nullptr || !instance->life.works()) return;
  const bool asked = instance->life.has_asked();
  runs.end(now, instance->bound, OutcomeKind::kSuccess, gpu_time, out);
  end_run(now, *instance, out);
  if (asked) idle(now, id, out);
}

void Core::State::loaded(Instant now, InvocationId id, Actions& out) {
  const LiveInvocation* invocation = tables.invocations.find(id);
  Instance* instance = invocation == nullptr ? nullptr : tables.pool.find(invocation->instance);
  // Of one that is bound and not delivered yet somebody says too much: it computes from its delivery on at the earliest.
  if (instance == nullptr || instance->bound != id || !invocation->running || !instance->life.loads()) return;
  runs.loaded(now, *instance);
  dispatch(now, out);
}

// What was bound to the instance is over: its slot is free, and it may take the next.
void Core::State::end_run(Instant now, Instance& instance, Actions& out) {
  if (instance.life.retires()) {
    const bool serves = instance.on->serves;
    keeper.stop(now, instance.id, serves ? StopReason::kFunctionChanged : StopReason::kGpuDrained, out);
  } else if (!tables.queue->policy().keeps_instances) {
    keeper.stop(now, instance.id, StopReason::kEvicted, out);
  } else {
    keeper.rest(now, instance);
  }
  dispatch(now, out);
}

void Core::State::idle(Instant now, InstanceId id, Actions& out) {
  Instance* instance = tables.pool.find(id);
  if (instance == nullptr) return;
  switch (instance->life.phase()) {
    case InstanceLife::Phase::kReturningChosen: return serve(now, *instance, out);
    case InstanceLife::Phase::kReturning: keeper.clear_deadline(id); [[fallthrough]];
    case InstanceLife::Phase::kWorking:
      tables.pool.take(*instance, InstanceEvent::kAsked);  // idle when its work has ended
      if (!kept.held.empty()) dispatch(now, out);          // it may have been kept long enough
      return;
    default: return;
  }
}

void Core::State::expire_deadlines(Instant now, Actions& out) {
  while (const auto overdue = keeper.overdue(now)) {
    Instance& instance = *tables.pool.find(*overdue);
    if (runs.outlasts_load(now, instance)) continue;
    const bool starting = instance.life.starts();
    keeper.kill(now, instance.id, starting ? StopReason::kStartFailed : StopReason::kTimeout, out);
    Seats{*this, now, out}.note_failure(instance);
    fail_start(now, instance, out);
    end_bound(now, instance, OutcomeKind::kStartFailed, OutcomeKind::kTimeout, out);
    keeper.forget(instance.id);
  }
}

void Core::State::end_bound(Instant now, const Instance& instance, OutcomeKind if_starting, OutcomeKind if_running,
                            Actions& out) {
  if (!instance.bound) return;
  const InvocationId id = instance.bound;
  const LiveInvocation& invocation = tables.invocations.at(id);
  if (invocation.running) {
    runs.end(now, id, if_running, std::nullopt, out);
  } else if (instance.returning()) {
    requeue(now, id, out);
  } else {
    tables.queue->on_failed_start(now, invocation.flow, id, now - invocation.dispatched);
    tables.invocations.complete(now, id, if_starting, Duration(0), out);
  }
}

void Core::State::requeue(Instant now, InvocationId id, Actions& out) {
  LiveInvocation& invocation = tables.invocations.at(id);
  if (invocation.expired) {  // its flow pays for the slot that it held, as for a start that failed
    tables.queue->on_failed_start(now, invocation.flow, id, now - invocation.dispatched);
    tables.invocations.forget(id);
    return;
  }
  tables.queue->on_requeue(now, invocation.flow, id);
  note_call(invocation.flow);
  tables.invocations.requeue(id);
  limit_concurrency(now, invocation.flow, out);
}

void Core::State::stop_and_requeue(Instant now, const Instance& instance, StopReason reason, Actions& out) {
  const InvocationId bound = instance.bound;
  // Queued again only after the instance has gone: what is requeued may be cancelled at once, and then nothing may be bound to it.
  keeper.stop(now, instance.id, reason, out);
  if (bound) requeue(now, bound, out);
}

void Core::State::retire_instances(Instant now, FlowId flow, Actions& out) {
  const std::vector<Instance*> all = tables.pool.of_flow(flow);  // a copy: keeper.stop() changes it
  for (Instance* instance : all) {
    if (instance->life.holds_slot()) {
      tables.pool.take(*instance, InstanceEvent::kRetired);
    } else {
      keeper.stop(now, instance->id, StopReason::kFunctionChanged, out);
    }
  }
  news.note_supply(flow);
}

// A function that may not run at all keeps nothing waiting.
void Core::State::limit_concurrency(Instant now, FlowId flow, Actions& out) {
  const auto& limit = tables.functions.at(flow).spec.max_concurrency;
  tables.queue->set_max_concurrency(flow, limit);
  if (limit == 0u) complete_queued(now, flow, OutcomeKind::kCancelled, out);
}

}  // namespace fairlead
