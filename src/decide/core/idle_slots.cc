#include "decide/core/idle_slots.h"

#include <utility>

#include "decide/core/state.h"

namespace fairlead {

std::string_view idle_reason_name(IdleReason reason) {
  switch (reason) {
    case IdleReason::kOwnInstance: return "own-instance";
    case IdleReason::kStart: return "start";
    case IdleReason::kStartLimit: return "start-limit";
    case IdleReason::kMemory: return "memory";
    case IdleReason::kStartMemory: return "start-memory";
    case IdleReason::kConcurrency: return "concurrency";
    case IdleReason::kPatience: return "patience";
    case IdleReason::kLanes: return "lanes";
    case IdleReason::kLoad: return "load";
    case IdleReason::kUnnamed: return "unnamed";
  }
  return "unnamed";
}

Duration IdleSlots::note(Instant now, std::size_t slots, IdleReason reason) {
  const Duration idled = (now - since_) * static_cast<Duration::rep>(slots_);
  seconds_[static_cast<std::size_t>(reason_)] += idled;
  since_ = now;
  slots_ = slots;
  reason_ = reason;
  return idled;
}

// ---- the core's

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

void Core::State::note_idle_slots(Instant now) {
  const std::size_t idle = policy->queued() > 0 ? pool.free_slots() : 0;
  const IdleReason before = idle_slots.reason();
  const Duration idled = idle_slots.note(now, idle, idle > 0 ? why_slots_idle() : IdleReason::kUnnamed);
  if (before == IdleReason::kStartMemory && idled > Duration(0)) charge_starts_for_idling(pool, idled);
}

// The policy asks about flows in its order, so the first that cannot run, or start, is the one whose turn it is.
IdleReason Core::State::why_slots_idle() const {
  for (const auto& first : {answers.run, answers.start}) {
    if (first == Obstacle::kMemory) return IdleReason::kMemory;
    if (first == Obstacle::kStarts) return IdleReason::kStartMemory;
  }
  if (pool.starting_ahead() > 0) return may_start_ahead() ? IdleReason::kStart : IdleReason::kStartLimit;
  if (!answers.one_could_run && (answers.run || answers.start)) return why_it_waits(pool, answers.waits);
  const bool is_patient = policy->next_chance() || policy->policy().one_function_per_gpu || answers.one_is_kept;
  if (is_patient) return IdleReason::kPatience;
  return answers.one_could_run || policy->contends() ? IdleReason::kUnnamed : IdleReason::kConcurrency;
}

}  // namespace fairlead
