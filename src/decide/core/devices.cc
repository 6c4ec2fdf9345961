// Devices: they come and go, serve and drain. device_table.h says what follows from what is said of one; here that takes effect: a
// GPU that fails is drained, D follows the load. And what may change while the core runs.
#include <utility>
#include <vector>

#include "decide/core/seats.h"
#include "decide/queueing/queue_tenants.h"

namespace fairlead {

using Kind = DeviceChange::Kind;

// Carries out what follows from one event.
struct Core::State::DeviceEvents {
  Core& core;
  State& state;
  Instant now;
  Actions& out;

  void operator()(const DeviceAppeared& event) const {
    core.add_gpu(event.gpu);
    state.dispatch(now, out);
  }
  void operator()(const DeviceWent& event) const {
    if (state.devices.leave(event.gpu)) state.drain(now, event.gpu, out);
  }
  void operator()(const DeviceSample& sample) const {
    if (!state.devices.is_present(sample.gpu)) return;
    remedy(sample.gpu, state.devices.step(now, sample));
    if (!sample.failure.empty()) return;
    adjust_slots(sample);
    core.device_memory_used(now, sample.gpu, sample.memory_used, out);
  }
  template <typename Event>
  void operator()(const Event& event) const {
    remedy(event.gpu, state.devices.step(now, event));
  }

  void remedy(GpuId gpu, std::optional<GpuRemedy> remedy) const {
    if (!remedy) return;
    switch (*remedy) {
      case GpuRemedy::kDrain: out.push_back(DeviceChange{gpu, Kind::kDrained}); return state.drain(now, gpu, out);
      case GpuRemedy::kRestartDaemon: return out.push_back(DeviceChange{gpu, Kind::kRestartDaemon});
      case GpuRemedy::kServe:
        out.push_back(DeviceChange{gpu, Kind::kServes});
        if (!state.devices.may_serve(gpu)) return;  // withheld
        state.tables.pool.set_serves(gpu, true);
        return state.dispatch(now, out);
    }
  }

  void adjust_slots(const DeviceSample& sample) const {
    const Gpu& gpu = state.tables.pool.gpu(sample.gpu);
    if (!gpu.serves) return;
    const auto slots = state.devices.follow_load(now, sample.gpu,
                                                 {.utilisation = sample.utilisation,
                                                  .slots_in_use = gpu.slots_in_use,
                                                  .waiting = state.tables.queue->queued() > 0,
                                                  .memory_running = gpu.memory_in_use,
                                                  .memory_total = gpu.capacity.memory});
    if (!slots || *slots == gpu.capacity.slots) return;
    out.push_back(DeviceChange{sample.gpu, Kind::kSlots});
    state.tables.pool.set_slots(sample.gpu, *slots);
    state.dispatch(now, out);
  }
};

void Core::device(Instant now, const DeviceEvent& event, Actions& out) {
  std::visit(State::DeviceEvents{*this, *state_, now, out}, event);
}

void Core::drain_gpu(Instant now, GpuId gpu, Actions& out) {
  state_->devices.withhold(gpu);
  state_->drain(now, gpu, out);
}

void Core::restore_gpu(Instant now, GpuId gpu, Actions& out) {
  state_->devices.give_back(gpu);
  if (!state_->devices.may_serve(gpu)) return;
  state_->tables.pool.set_serves(gpu, true);
  state_->dispatch(now, out);
}

void Core::State::drain(Instant now, GpuId gpu, Actions& out) {
  tables.pool.set_serves(gpu, false);
  for (const InstanceId id : tables.pool.ids()) {
    Instance& instance = *tables.pool.find(id);
    if (instance.gpu != gpu) continue;
    if (instance.life.runs()) {
      tables.pool.take(instance, InstanceEvent::kRetired);
      news.note_supply(instance.flow);
    } else {
      stop_and_requeue(now, instance, StopReason::kGpuDrained, out);
    }
  }
  dispatch(now, out);
}

// Devices that went, and on which nothing is left. What is being killed has its memory there until it is gone.
void Core::State::forget_devices(Actions& out) {
  const auto is_empty = [this](GpuId gpu) {
    return tables.pool.gpu(gpu).instances.empty() && residency.remove_gpu(gpu);
  };
  for (const GpuId gpu : devices.forget_empty(is_empty)) {
    claim.leave(gpu);
    tables.pool.remove_gpu(gpu);
    tables.slices.set_profile(gpu, "");
    lanes.remove(gpu);
    out.push_back(DeviceChange{gpu, Kind::kGone});
  }
}

void Core::retune(Instant now, const Tuning& tuning, Actions& out) {
  CoreTables& tables = state_->tables;
  if (tuning.queue_limit) tables.options.queue_limit = *tuning.queue_limit;
  for (const auto& [gpu, slots] : tuning.slots) {
    if (!state_->devices.contains(gpu) || tables.pool.gpu(gpu).capacity.slots == slots) continue;
    tables.pool.set_slots(gpu, slots);
    state_->lanes.slots_changed(gpu, slots);
  }
  for (const auto& [tenant, share] : tuning.tenants) tables.queue->set_tenant(tenant, share);
  for (const auto& [tenant, factor] : tuning.tenant_factors) QueueTenants::set_factor(*tables.queue, tenant, factor);
  for (const auto& [flow, seats] : tuning.seats) State::Seats{*state_, now, out}.move(flow, seats);
  for (const InstanceId id : tuning.parked_to_stop) {
    const Instance* instance = tables.pool.find(id);
    if (instance != nullptr && instance->may_be_evicted()) state_->keeper.stop(now, id, StopReason::kEvicted, out);
  }
  state_->dispatch(now, out);
}

}  // namespace fairlead
