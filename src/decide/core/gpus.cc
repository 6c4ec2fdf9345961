#include <algorithm>
#include <vector>

#include "base/check.h"
#include "decide/core/seats.h"

namespace fairlead {

void Core::retune(Instant now, const Tuning& tuning, Actions& out) {
  if (tuning.queue_limit) state_->options.queue_limit = *tuning.queue_limit;
  for (const auto& [gpu, slots] : tuning.slots) {
    if (!state_->devices.all.contains(gpu) || state_->pool.gpu(gpu).capacity.slots == slots) continue;
    state_->pool.set_slots(gpu, slots);
    if (state_->measured_lanes.erase(gpu) == 0) continue;
    // Lanes go from D upwards, so they are measured anew.
    state_->options.most_task_lanes = std::max(state_->options.most_task_lanes, slots);
    state_->add_lanes({.gpu = gpu});
  }
  for (const auto& [tenant, share] : tuning.tenants) state_->policy->set_tenant(tenant, share);
  for (const auto& [flow, seats] : tuning.seats) State::Seats{*state_, now, out}.move(flow, seats);
  for (const InstanceId id : tuning.parked_to_stop) {
    const Instance* instance = state_->pool.find(id);
    if (instance != nullptr && instance->may_be_evicted()) state_->stop(now, id, StopReason::kEvicted, out);
  }
  state_->dispatch(now, out);
}

void Core::drain_gpu(Instant now, GpuId gpu, Actions& out) {
  state_->devices.all.at(gpu).is_withheld = true;
  state_->drain(now, gpu, out);
}

void Core::restore_gpu(Instant now, GpuId gpu, Actions& out) {
  State::Device& device = state_->devices.all.at(gpu);
  device.is_withheld = false;
  if (!device.may_serve()) return;
  state_->pool.set_serves(gpu, true);
  state_->dispatch(now, out);
}

void Core::State::drain(Instant now, GpuId gpu, Actions& out) {
  pool.set_serves(gpu, false);
  for (const InstanceId id : pool.ids()) {
    Instance& instance = *pool.find(id);
    if (instance.gpu == gpu) drain_instance(now, instance, out);
  }
  dispatch(now, out);
}

// Queued again only after the instance has gone: what is requeued may be cancelled at once, and then nothing may be
// bound to it.
void Core::State::drain_instance(Instant now, Instance& instance, Actions& out) {
  const InvocationId bound = instance.bound;
  if (instance.life.runs()) {
    pool.take(instance, InstanceEvent::kRetired);
    note_supply(instance.flow);
    return;
  }
  stop(now, instance.id, StopReason::kGpuDrained, out);
  if (bound) requeue(now, bound, out);
}

}  // namespace fairlead
