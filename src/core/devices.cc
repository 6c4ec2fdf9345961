// What the monitor, the driver and the MPS daemons say of the devices. sharing/gpu_health.h and dynamic_slots.h decide; here their
// decisions take effect: a GPU that fails is drained, D follows the load.
#include "base/check.h"
#include "core/state.h"

namespace fairlead {

using Kind = DeviceChange::Kind;

void Core::device_sampled(Instant now, const DeviceSample& sample, Actions& out) {
  GpuHealth& health = state_->devices.at(sample.gpu).health;
  if (!sample.failure.empty()) {
    return state_->remedy(sample.gpu, health.device_fails(now, sample.failure), now, out);
  }
  state_->remedy(sample.gpu, health.device_answers(now), now, out);
  state_->adjust_slots(now, sample, out);
  device_memory_used(now, sample.gpu, sample.memory_used, out);
}

void Core::device_fault(Instant now, GpuId gpu, unsigned xid, Actions& out) {
  state_->remedy(gpu, state_->devices.at(gpu).health.xid(xid), now, out);
}

void Core::device_emptied(Instant now, GpuId gpu, Actions& out) {
  state_->remedy(gpu, state_->devices.at(gpu).health.emptied(now), now, out);
}

void Core::daemon_seen(Instant now, GpuId gpu, MpsDaemonState state, Actions& out) {
  state_->remedy(gpu, state_->devices.at(gpu).health.daemon(state), now, out);
}

void Core::daemon_started(Instant now, GpuId gpu, bool ok, Actions& out) {
  state_->remedy(gpu, state_->devices.at(gpu).health.daemon_started(now, ok), now, out);
}

void Core::State::add_device(const GpuSpec& gpu) {
  Device device{.health = GpuHealth(gpu.has_daemon), .slots = std::nullopt};
  if (gpu.is_dynamic) device.slots.emplace(gpu.slots == 0 ? options.slots_per_gpu : gpu.slots);
  const bool is_new = devices.emplace(gpu.gpu, std::move(device)).second;
  FL_CHECK(is_new, "GPU {} is there already", gpu.gpu.value());
}

void Core::State::adjust_slots(Instant now, const DeviceSample& sample, Actions& out) {
  std::optional<DynamicSlots>& dynamic = devices.at(sample.gpu).slots;
  const Gpu& gpu = pool.gpu(sample.gpu);
  if (!dynamic || !gpu.serves) return;
  const std::size_t slots = dynamic->update(now, {.utilisation = sample.utilisation,
                                                   .slots_in_use = gpu.slots_in_use,
                                                   .waiting = policy->queued() > 0,
                                                   .memory_running = gpu.memory_in_use,
                                                   .memory_total = gpu.memory});
  if (slots == gpu.slots) return;
  out.push_back(DeviceChange{sample.gpu, Kind::kSlots});
  pool.set_slots(sample.gpu, slots);
  dispatch(now, out);
}

void Core::State::remedy(GpuId gpu, std::optional<GpuRemedy> remedy, Instant now, Actions& out) {
  if (!remedy) return;
  switch (*remedy) {
    case GpuRemedy::kDrain: out.push_back(DeviceChange{gpu, Kind::kDrained}); return drain(now, gpu, out);
    case GpuRemedy::kRestartDaemon: return out.push_back(DeviceChange{gpu, Kind::kRestartDaemon});
    case GpuRemedy::kServe:
      out.push_back(DeviceChange{gpu, Kind::kServes});
      pool.set_serves(gpu, true);
      return dispatch(now, out);
  }
}

}  // namespace fairlead
