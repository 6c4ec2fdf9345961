#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "decide/core/seats.h"

namespace fairlead {
void Core::State::dispatch(Instant now, Actions& out) {
  latest = now;
  answers = {};
  expire_requests(now, out);
  keep_programs_in_turn();
  Seats{*this, now, out}.tend();
  offer_slots(now, out);
  keep_claim();
  if (starts_ahead()) {
    start_ahead(now, out);
    start_prepared(now, out);
  }
  keep_claim();
  settle_memory(now, out);
  forget_devices(out);
  note_idle_slots(now);
}

// Every free slot and lane is offered until the policy has nothing for it. Terminates: each choice takes one.
void Core::State::offer_slots(Instant now, Actions& out) {
  while (pool.has_turn() && policy->queued() > 0) {
    answers = {};
    const auto choice = policy->choose(now, *this);
    if (!choice) break;
    Invocation& invocation = invocations.at(choice->invocation);
    const auto placement = placer.place(pool, choice->flow, residency.expected(choice->flow), choice->gpu);
    FL_CHECK(placement, "flow {} was chosen and cannot be placed", choice->flow.value());
    keep_claim();  // of another flow that choose() met: from the next choice on
    invocation.dispatched = now;

    for (const InstanceId victim : placement->evict) evict(now, victim, out);
    if (policy->policy().one_function_per_gpu) evict_others(now, choice->flow, placement->gpu, out);
    if (placement->instance != nullptr) {
      run_on_warm(now, choice->invocation, *placement, out);
      continue;
    }
    invocation.instance = start(now, choice->flow, *placement, choice->invocation, out);
    invocation.start = StartKind::kCold;
  }
}

void Core::State::run_on_warm(Instant now, InvocationId id, const Placement& placement, Actions& out) {
  Instance& warm = *placement.instance;
  Invocation& invocation = invocations.at(id);
  invocation.dispatched = now;
  const bool on_device = residency.run(now, warm.id, placement.memory);
  const bool is_first = warm.life.unused();
  pool.count_memory(warm, placement.memory, warm.pinned);
  pool.bind(warm, id);
  note_setup(warm.flow);
  invocation.instance = warm.id;
  invocation.start = is_first ? StartKind::kCold : on_device ? StartKind::kDeviceWarm : StartKind::kHostWarm;
  settle_memory(now, out);  // before the invocation: its memory returns while the payload travels
  if (warm.life.phase() == InstanceLife::Phase::kChosen) deliver(now, warm, out);
}

// REQUIRES: something is bound to the instance and it waits for it.
void Core::State::deliver(Instant now, Instance& instance, Actions& out) {
  Invocation& invocation = invocations.at(instance.bound);
  invocation.delivered = now;
  invocation.running = true;
  pool.take(instance, InstanceEvent::kDelivered);
  instance.last_used = now;
  const Instant deadline = std::min(now + functions.at(instance.flow).spec.timeout, invocation.deadline);
  request_deadlines.forget(instance.bound, invocation.deadline);
  invocation.run_deadline = deadline;
  deadlines.set(instance.id, instance.life.loads() ? std::min(deadline, load_deadline(now, instance)) : deadline);
  if (!instance.life.loads()) begin_computing(now, instance);
  if (invocation.start == StartKind::kCold) invocation.instance_start = instance.start_took;
  if (invocation.start == StartKind::kDeviceWarm) ++counters.device_warm_starts;
  if (invocation.start == StartKind::kHostWarm) ++counters.host_warm_starts;
  out.push_back(Deliver{instance.bound, instance.id, instance.gpu, invocation.start, deadline});
}

void Core::State::complete(Instant now, InvocationId id, OutcomeKind outcome, Duration service, Actions& out) {
  const Invocation& invocation = invocations.at(id);
  if (!invocation.expired) append_completion(now, id, outcome, service, out);
  request_deadlines.forget(id, invocation.deadline);
  invocations.erase(id);
}

void Core::State::append_completion(Instant now, InvocationId id, OutcomeKind outcome, Duration service, Actions& out) {
  const Invocation& invocation = invocations.at(id);
  const bool dispatched = static_cast<bool>(invocation.instance);
  Complete done{id, invocation.flow, outcome, invocation.start, now - invocation.arrived, Duration(0), service};
  if (dispatched) {
    done.queue_time = invocation.dispatched - invocation.arrived;
    done.start_time = (invocation.running ? invocation.delivered : now) - invocation.dispatched;
    done.instance_start = invocation.instance_start;
  }
  done.owed = invocation.owed;
  const bool answered = outcome == OutcomeKind::kSuccess || outcome == OutcomeKind::kFunctionError;
  ++(answered ? counters.completed : counters.failed);
  out.push_back(done);
}

void Core::State::complete_run(Instant now, InvocationId id, OutcomeKind outcome, std::optional<Duration> gpu_time,
                               Actions& out) {
  end_computing(now, id, outcome == OutcomeKind::kSuccess);
  const Duration service = charge_run(now, id, gpu_time);
  const Invocation& invocation = invocations.at(id);
  if (!invocation.answered) return complete(now, id, outcome, service, out);
  out.push_back(Charge{id, invocation.flow, service, service - invocation.stated, invocation.owed});
  invocations.erase(id);
}

Duration Core::State::charge_run(Instant now, InvocationId id, std::optional<Duration> gpu_time) {
  Invocation& invocation = invocations.at(id);
  Duration service = bounded_use(gpu_time, now - invocation.delivered);
  Function* function = functions.find(invocation.flow);
  if (function == nullptr) return service;  // removed meanwhile
  const Duration entitled = std::min(service, Seats::promised(*this, invocation, now));
  invocation.owed = std::exchange(function->owed, Duration(0));
  service += invocation.owed;
  policy->on_completion(now, invocation.flow, id, service, entitled);
  return service;
}

void Core::State::complete_queued(Instant now, FlowId flow, OutcomeKind outcome, Actions& out) {
  for (const InvocationId id : invocations.ids()) {
    const Invocation& invocation = invocations.at(id);
    if (invocation.instance || (flow && invocation.flow != flow)) continue;
    policy->cancel(now, invocation.flow, id);
    complete(now, id, outcome, Duration(0), out);
  }
}

bool Core::State::can_run(FlowId flow, GpuId only) const {
  const Bytes expected = residency.expected(flow);
  if (placer.has_warm(pool, flow, expected, only)) return true;
  return !starts_ahead() && may_have_more(flow) && held_back_on(flow).empty() && !worth_waiting(flow) &&
         placer.can_place(pool, flow, expected, only);
}

bool Core::State::can_run(FlowId flow) const {
  const bool can = can_run(flow, GpuId());
  answers.note_run(flow, can ? Obstacle::kNothing : obstacle_to_run(flow));
  return can;
}

Obstacle Core::State::obstacle(FlowId flow) const {
  return can_run(flow, GpuId()) ? Obstacle::kNothing : obstacle_to_run(flow);
}

// Of a flow that cannot run.
Obstacle Core::State::obstacle_to_run(FlowId flow) const {
  const bool wants_start = !starts_ahead() && may_have_more(flow) && held_back_on(flow).empty() && !worth_waiting(flow);
  return wants_start ? Obstacle::kMemory : placer.obstacle(pool, flow, residency.expected(flow));
}

std::vector<Placeable::Place> Core::State::places(FlowId flow) const {
  std::vector<Place> places;
  for (const Gpu* gpu : pool.gpus()) {
    if (gpu->serves) places.push_back(*place(flow, gpu->id));
  }
  const bool can = std::any_of(places.begin(), places.end(), [](const Place& place) { return place.free; });
  answers.note_run(flow, can ? Obstacle::kNothing : obstacle_to_run(flow));
  return places;
}

std::optional<Placeable::Place> Core::State::place(FlowId flow, GpuId id) const {
  const Gpu& gpu = pool.gpu(id);
  if (!gpu.serves) return std::nullopt;
  const Instance* warm = placer.warm_instance(pool, flow, residency.expected(flow), id);
  return Place{.gpu = id,
               .setup = setup_on(flow, id),
               .running = gpu.slots_in_use,
               .free = warm != nullptr || can_run(flow, id),
               .evicts = warm != nullptr && pool.task_room().evicts(warm->id)};
}

std::vector<GpuId> Core::State::free_gpus() const {
  std::vector<const Gpu*> free;
  std::copy_if(pool.gpus().begin(), pool.gpus().end(), std::back_inserter(free),
               [](const Gpu* gpu) { return gpu->has_turn(); });
  std::stable_sort(free.begin(), free.end(),
                   [](const Gpu* a, const Gpu* b) { return a->slots_in_use < b->slots_in_use; });
  std::vector<GpuId> ids;
  for (const Gpu* gpu : free) ids.push_back(gpu->id);
  return ids;
}

void Core::State::evict_others(Instant now, FlowId flow, GpuId gpu, Actions& out) {
  const std::vector<Instance*> there = pool.gpu(gpu).instances;
  for (const Instance* instance : there) {
    if (instance->flow != flow && instance->may_be_evicted()) evict(now, instance->id, out);
  }
}

}  // namespace fairlead
