#include "decide/core/idle_reason.h"

#include <vector>

namespace fairlead {
namespace {

// Of a flow that has the memory and cannot run. An instance of it that loads, or that would, waits for data; one that is free,
// for a lane; else all are busy.
IdleReason why_it_waits(const InstancePool& pool, FlowId flow) {
  IdleReason reason = IdleReason::kOwnInstance;
  for (const Instance* instance : pool.of_flow(flow)) {
    if (instance->life.loads()) return IdleReason::kLoad;
    if (!instance->spare() || instance->terms.is_entitled) continue;
    if (!instance->on->serves || instance->on->takes(*instance)) continue;
    const bool only_loads = instance->terms.is_session && instance->on->task_lanes().takes(false);
    if (only_loads) return IdleReason::kLoad;
    reason = IdleReason::kLanes;
  }
  return reason;
}

// All that start share it: each could have started later, or on less.
void charge_starts_for_idling(InstancePool& pool, Duration idled) {
  std::vector<Instance*> starting;
  for (const InstanceId id : pool.ids()) {
    Instance* instance = pool.find(id);
    if (instance->starts_ahead()) starting.push_back(instance);
  }
  for (Instance* instance : starting) instance->idled += idled / static_cast<Duration::rep>(starting.size());
}

}  // namespace

IdleReason why_slots_idle(const CoreTables& tables, const DispatchAnswers& answers, bool may_start) {
  const FlowQueue& queue = *tables.queue;
  for (const auto& first : {answers.run(), answers.start()}) {
    if (first == Obstacle::kMemory) return IdleReason::kMemory;
    if (first == Obstacle::kStarts) return IdleReason::kStartMemory;
  }
  if (tables.pool.starting_ahead() > 0) return may_start ? IdleReason::kStart : IdleReason::kStartLimit;
  const bool somebody_waits = answers.run() || answers.start();
  if (!answers.one_could_run() && somebody_waits) return why_it_waits(tables.pool, answers.waits());
  const bool is_patient = queue.next_chance() || queue.policy().one_function_per_gpu || answers.one_is_kept();
  if (is_patient) return IdleReason::kPatience;
  return answers.one_could_run() || queue.contends() ? IdleReason::kUnnamed : IdleReason::kConcurrency;
}

void note_idle_slots(Instant now, CoreTables& tables, const DispatchAnswers& answers, const StartPlanner& planner,
                     IdleSlots& slots) {
  const std::size_t idle = tables.queue->queued() > 0 ? tables.pool.free_slots() : 0;
  const IdleReason before = slots.reason();
  const IdleReason reason = idle > 0 ? why_slots_idle(tables, answers, planner.may_start()) : IdleReason::kUnnamed;
  const Duration idled = slots.note(now, idle, reason);
  if (before == IdleReason::kStartMemory && idled > Duration(0)) charge_starts_for_idling(tables.pool, idled);
}

}  // namespace fairlead
