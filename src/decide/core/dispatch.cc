#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "decide/core/holds.h"
#include "decide/core/idle_reason.h"
#include "decide/core/seats.h"

namespace fairlead {

void Core::State::dispatch(Instant now, Actions& out) {
  tables.latest = now;
  dispatchable.begin();
  expire_requests(now, out);
  lanes.tell_turns();
  Holds{*this, now, out}.tend();
  Seats{*this, now, out}.tend();
  offer_slots(now, out);
  claim.keep(tables, residency, placer);
  if (starts_ahead(tables)) {
    start_ahead(now, out);
    if (!kept.to_prepare.empty()) start_prepared(now, out);
  }
  claim.keep(tables, residency, placer);
  settle_memory(now, out);
  if (devices.some_leave()) forget_devices(out);
  note_idle_slots(now, tables, dispatchable.answers(), planner, idle_slots);
}

// Every free slot and lane is offered until the policy has nothing for it. Terminates: each choice takes one.
void Core::State::offer_slots(Instant now, Actions& out) {
  while (tables.pool.has_turn() && tables.queue->queued() > 0) {
    dispatchable.begin();
    const auto choice = tables.queue->choose(now, dispatchable);
    if (!choice) break;
    LiveInvocation& invocation = tables.invocations.at(choice->invocation);
    const auto placement = placer.place(tables.pool, choice->flow, residency.expected(choice->flow), choice->gpu);
    FL_CHECK(placement, "flow {} was chosen and cannot be placed", choice->flow.value());
    claim.keep(tables, residency, placer);  // of another flow that choose() met: from the next choice on
    invocation.dispatched = now;

    for (const InstanceId victim : placement->evict) keeper.evict(now, victim, out);
    if (tables.queue->policy().one_function_per_gpu) evict_others(now, choice->flow, placement->gpu, out);
    if (placement->instance != nullptr) {
      run_on_warm(now, choice->invocation, *placement, out);
      continue;
    }
    invocation.instance = keeper.start(now, choice->flow, *placement, choice->invocation, out);
    invocation.start = StartKind::kCold;
  }
}

void Core::State::run_on_warm(Instant now, InvocationId id, const Placement& placement, Actions& out) {
  Instance& warm = *placement.instance;
  LiveInvocation& invocation = tables.invocations.at(id);
  invocation.dispatched = now;
  const bool on_device = residency.run(now, warm.id, placement.memory);
  const bool is_first = warm.life.unused();
  tables.pool.count_memory(warm, placement.memory, warm.pinned);
  tables.pool.bind(warm, id);
  news.note_setup(warm.flow);
  invocation.instance = warm.id;
  invocation.start = is_first ? StartKind::kCold : on_device ? StartKind::kDeviceWarm : StartKind::kHostWarm;
  settle_memory(now, out);  // before the invocation: its memory returns while the payload travels
  if (warm.life.phase() == InstanceLife::Phase::kChosen) runs.begin(now, warm, out);
}

// Deadlines of callers (Core::arrive). One that passes while its invocation waits completes it at once, and it is never delivered.
//
// Example: A starts for 9 s with invocation 1, which may take 5 s. At 5 s invocation 1 completes as expired. Its start goes on,
// holds its slot and is charged: otherwise callers with short deadlines could start instances at nobody's cost. At 9 s the
// instance is idle, and takes the next invocation.
void Core::State::expire_requests(Instant now, Actions& out) {
  while (const auto id = tables.invocations.take_due(now)) {
    LiveInvocation& invocation = tables.invocations.at(*id);
    if (invocation.instance) {
      tables.invocations.expire(now, *id, out);
    } else {
      FL_CHECK(tables.queue->cancel(now, invocation.flow, *id), "invocation {}", id->value());
      tables.invocations.complete(now, *id, OutcomeKind::kExpired, Duration(0), out);
    }
  }
}

void Core::State::serve(Instant now, Instance& instance, Actions& out) {
  expire_requests(now, out);
  if (!tables.invocations.at(instance.bound).expired) return runs.begin(now, instance, out);
  const InstanceId id = instance.id;
  requeue(now, instance.bound, out);
  end_run(now, instance, out);
  idle(now, id, out);
}

void Core::State::complete_queued(Instant now, FlowId flow, OutcomeKind outcome, Actions& out) {
  for (const InvocationId id : tables.invocations.ids()) {
    const LiveInvocation& invocation = tables.invocations.at(id);
    if (invocation.instance || (flow && invocation.flow != flow)) continue;
    tables.queue->cancel(now, invocation.flow, id);
    tables.invocations.complete(now, id, outcome, Duration(0), out);
  }
}

void Core::State::evict_others(Instant now, FlowId flow, GpuId gpu, Actions& out) {
  const std::vector<Instance*> there = tables.pool.gpu(gpu).instances;
  for (const Instance* instance : there) {
    if (instance->flow != flow && instance->may_be_evicted()) keeper.evict(now, instance->id, out);
  }
}

}  // namespace fairlead
