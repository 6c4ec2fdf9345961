#include <algorithm>

#include "base/check.h"
#include "core/state.h"

namespace fairlead {
namespace {

// A token held is charged at least wall time / kMinChargeDivisor, however little of the GPU was used.
constexpr int kMinChargeDivisor = 10;

}  // namespace

// Every free token is offered until the policy has nothing for it. Terminates: each choice takes a token.
void Core::State::dispatch(Instant now, Actions& out) {
  while (pool.has_free_token() && policy->queued() > 0) {
    const auto choice = policy->choose(now, *this);
    if (!choice) return;
    Invocation& invocation = invocations.at(choice->invocation);
    const auto placement = placer.place(pool, choice->flow, functions.at(choice->flow).expected_memory);
    FL_CHECK(placement, "flow {} was chosen and cannot be placed", choice->flow.value());
    invocation.dispatched = now;

    if (Instance* warm = placement->instance) {
      pool.bind(*warm, choice->invocation);
      invocation.instance = warm->id;
      invocation.start = StartKind::kWarm;
      if (warm->state == InstanceState::kIdle) deliver(now, *warm, out);
      continue;
    }
    for (const InstanceId victim : placement->evict) {
      stop(victim, StopReason::kEvicted, out);
      ++counters.evictions;
    }
    const Instance& started = pool.add(now, choice->flow, placement->gpu, placement->memory, choice->invocation);
    invocation.instance = started.id;
    invocation.start = StartKind::kCold;
    set_deadline(started.id, now + options.start_deadline);
    ++counters.cold_starts;
    out.push_back(StartInstance{started.id, started.flow, started.gpu});
  }
}

// REQUIRES: something is bound to the instance and it waits for it.
void Core::State::deliver(Instant now, Instance& instance, Actions& out) {
  Invocation& invocation = invocations.at(instance.bound);
  invocation.delivered = now;
  invocation.running = true;
  instance.state = InstanceState::kBusy;
  instance.answered = false;
  instance.last_used = now;
  const auto function = functions.find(instance.flow);
  FL_CHECK(function != functions.end(), "flow {} was removed", instance.flow.value());
  const Instant deadline = now + function->second.timeout;
  set_deadline(instance.id, deadline);
  if (invocation.start == StartKind::kWarm) ++counters.warm_starts;
  out.push_back(Deliver{instance.bound, instance.id, instance.gpu, invocation.start, deadline});
}

void Core::State::complete(Instant now, Invocations::iterator it, Outcome outcome, Duration service, Actions& out) {
  const Invocation& invocation = it->second;
  const bool dispatched = static_cast<bool>(invocation.instance);
  Complete done{it->first, invocation.flow, outcome, invocation.start, now - invocation.arrived, Duration(0), service};
  if (dispatched) {
    done.queue_time = invocation.dispatched - invocation.arrived;
    done.start_time = (invocation.running ? invocation.delivered : now) - invocation.dispatched;
  }
  const bool answered = outcome == Outcome::kSuccess || outcome == Outcome::kFunctionError;
  ++(answered ? counters.completed : counters.failed);
  out.push_back(done);
  invocations.erase(it);
}

void Core::State::complete_run(Instant now, Invocations::iterator it, Outcome outcome, std::optional<Duration> gpu_time,
                               Actions& out) {
  const Duration wall = now - it->second.delivered;
  const Duration service = gpu_time ? std::max(*gpu_time, wall / kMinChargeDivisor) : wall;
  const FlowId flow = it->second.flow;
  if (functions.contains(flow)) policy->on_completion(now, flow, it->first, service);
  complete(now, it, outcome, service, out);
}

void Core::State::complete_queued(Instant now, FlowId flow, Outcome outcome, Actions& out) {
  for (auto it = invocations.begin(); it != invocations.end();) {
    const auto current = it++;
    if (current->second.instance || (flow && current->second.flow != flow)) continue;
    policy->cancel(now, current->second.flow, current->first);
    complete(now, current, outcome, Duration(0), out);
  }
}

bool Core::State::can_run(FlowId flow) const {
  return placer.can_place(pool, flow, functions.at(flow).expected_memory);
}

bool Core::State::has_warm_instance(FlowId flow) const {
  return placer.has_warm(pool, flow);
}

}  // namespace fairlead
