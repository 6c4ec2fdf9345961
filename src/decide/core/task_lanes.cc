// Lanes of kernel tasks: how many of their calls run on a GPU, which of them compute, and when programs have their turn.
#include <algorithm>

#include "decide/core/state.h"

namespace fairlead {
namespace {

// A load that lasts so many times as long as it should, and at least kLeastPatience, may wait for what never comes: an input that
// nobody writes, a server that starts again and again. Others' loads wait for it no longer.
constexpr int kLoadsOfPatience = 4;
constexpr Duration kLeastPatience = std::chrono::seconds(2);

}  // namespace

void Core::State::add_lanes(const GpuSpec& gpu) {
  if (!starts_ahead() || gpu.only_seats) return;  // a start that holds a slot must find an instance that can go
  pool.set_loads_at_once(gpu.gpu, options.task_loads_per_gpu);
  if (!gpu.has_task_lanes) return;
  pool.set_lanes(gpu.gpu, options.task_lanes);
  if (options.most_task_lanes == 0) return;
  const std::size_t least = std::min(pool.gpu(gpu.gpu).capacity.slots, options.most_task_lanes);
  const MeasuredLanes::Options bounds{.least = least, .most = options.most_task_lanes};
  pool.set_lanes(gpu.gpu, measured_lanes.try_emplace(gpu.gpu, bounds).first->second.lanes());
}

// A program runs on the GPU, starts there, or has an instance there and work for it.
void Core::State::keep_programs_in_turn() {
  if (options.task_lanes == 0 && options.most_task_lanes == 0 && options.task_loads_per_gpu == 0) return;
  for (const Gpu* gpu : pool.gpus()) {
    const auto has_a_turn = [this](const Instance* instance) {
      return !instance->terms.is_session && (!instance->spare() || queued(instance->flow) > 0);
    };
    const auto& there = gpu->instances;
    pool.set_for_programs(gpu->id, gpu->programs > 0 && std::any_of(there.begin(), there.end(), has_a_turn));
  }
}

void Core::State::begin_computing(Instant now, const Instance& instance) {
  const auto lanes = measured_lanes.find(instance.gpu);
  if (!instance.terms.is_session || instance.terms.is_entitled || lanes == measured_lanes.end()) return;
  lanes->second.begin(now, instance.bound, instance.flow);
}

void Core::State::end_computing(Instant now, InvocationId id, bool says_something) {
  const Instance* instance = pool.find(invocations.at(id).instance);
  const auto lanes = instance == nullptr ? measured_lanes.end() : measured_lanes.find(instance->gpu);
  if (lanes == measured_lanes.end()) return;
  if (says_something && functions.contains(invocations.at(id).flow)) {
    lanes->second.end(now, id);
  } else {
    lanes->second.abandon(now, id);
  }
  pool.set_lanes(instance->gpu, lanes->second.lanes());
}

void Core::State::forget_task(FlowId flow) {
  for (auto& [gpu, lanes] : measured_lanes) lanes.forget(flow);
}

void Core::State::loaded(Instant now, InvocationId id, Actions& out) {
  const Invocation* invocation = invocations.find(id);
  Instance* instance = invocation == nullptr ? nullptr : pool.find(invocation->instance);
  // Of one that is bound and not delivered yet somebody says too much: it computes from its delivery on at the earliest.
  if (instance == nullptr || instance->bound != id || !invocation->running || !instance->life.loads()) return;
  pool.take(*instance, InstanceEvent::kLoaded);
  deadlines.set(instance->id, invocation->run_deadline);
  begin_computing(now, *instance);
  dispatch(now, out);
}

Instant load_deadline(Instant now, const Instance& instance) {
  return now + std::max(kLoadsOfPatience * instance.reload, kLeastPatience);
}

// Whether its load has taken too long, and its time is not over: then it goes on in a lane, as if its data were there, but says
// nothing of what running together costs.
bool Core::State::outlasts_load(Instant now, Instance& instance) {
  if (!instance.life.loads()) return false;
  const Instant deadline = invocations.at(instance.bound).run_deadline;
  if (deadline <= now) return false;
  pool.take(instance, InstanceEvent::kLoaded);
  deadlines.set(instance.id, deadline);
  ++counters.loads_given_up;
  return true;
}

}  // namespace fairlead
