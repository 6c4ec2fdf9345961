// What the monitor, the driver and the MPS daemons say of the devices. sharing/gpu_health.h and dynamic_slots.h decide; here their
// decisions take effect: a GPU that fails is drained, D follows the load.
#include "base/check.h"
#include "decide/core/state.h"

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
    Device* const device = present(event.gpu);
    if (device == nullptr) return;
    device->goes = true;
    state.devices.going.push_back(event.gpu);
    state.drain(now, event.gpu, out);
  }
  void operator()(const DeviceSample& sample) const {
    Device* const device = present(sample.gpu);
    if (device == nullptr) return;
    if (!sample.failure.empty()) return remedy(sample.gpu, device->health.device_fails(now, sample.failure));
    remedy(sample.gpu, device->health.device_answers(now));
    adjust_slots(sample, *device);
    core.device_memory_used(now, sample.gpu, sample.memory_used, out);
  }
  void operator()(const DeviceFault& event) const {
    if (Device* device = present(event.gpu)) remedy(event.gpu, device->health.xid(event.xid));
  }
  void operator()(const DeviceEmptied& event) const {
    if (Device* device = present(event.gpu)) remedy(event.gpu, device->health.emptied(now));
  }
  void operator()(const DaemonSeen& event) const {
    if (Device* device = present(event.gpu)) remedy(event.gpu, device->health.daemon(event.state));
  }
  void operator()(const DaemonStarted& event) const {
    if (Device* device = present(event.gpu)) remedy(event.gpu, device->health.daemon_started(now, event.ok));
  }

  Device* present(GpuId gpu) const {  // null: it has gone, or goes
    const auto device = state.devices.all.find(gpu);
    return device == state.devices.all.end() || device->second.goes ? nullptr : &device->second;
  }

  void remedy(GpuId gpu, std::optional<GpuRemedy> remedy) const {
    if (!remedy) return;
    switch (*remedy) {
      case GpuRemedy::kDrain: out.push_back(DeviceChange{gpu, Kind::kDrained}); return state.drain(now, gpu, out);
      case GpuRemedy::kRestartDaemon: return out.push_back(DeviceChange{gpu, Kind::kRestartDaemon});
      case GpuRemedy::kServe:
        out.push_back(DeviceChange{gpu, Kind::kServes});
        if (!present(gpu)->may_serve()) return;  // withheld
        state.pool.set_serves(gpu, true);
        return state.dispatch(now, out);
    }
  }

  void adjust_slots(const DeviceSample& sample, Device& device) const {
    const Gpu& gpu = state.pool.gpu(sample.gpu);
    if (!device.slots || !gpu.serves) return;
    const std::size_t slots = device.slots->update(now, {.utilisation = sample.utilisation,
                                                         .slots_in_use = gpu.slots_in_use,
                                                         .waiting = state.policy->queued() > 0,
                                                         .memory_running = gpu.memory_in_use,
                                                         .memory_total = gpu.capacity.memory});
    if (slots == gpu.capacity.slots) return;
    out.push_back(DeviceChange{sample.gpu, Kind::kSlots});
    state.pool.set_slots(sample.gpu, slots);
    state.dispatch(now, out);
  }
};

void Core::device(Instant now, const DeviceEvent& event, Actions& out) {
  std::visit(State::DeviceEvents{*this, *state_, now, out}, event);
}

void Core::State::add_device(const GpuSpec& gpu) {
  Device device{.health = GpuHealth(gpu.has_daemon), .slots = std::nullopt};
  if (gpu.is_dynamic) device.slots.emplace(gpu.slots == 0 ? options.slots_per_gpu : gpu.slots);
  const bool is_new = devices.all.emplace(gpu.gpu, std::move(device)).second;
  FL_CHECK(is_new, "GPU {} is there already", gpu.gpu.value());
}

// Devices that went, and on which nothing is left. What is being killed has its memory there until it is gone.
void Core::State::forget_devices(Actions& out) {
  if (devices.going.empty()) return;
  std::erase_if(devices.going, [&](GpuId gpu) {
    if (!pool.gpu(gpu).instances.empty() || !residency.remove_gpu(gpu)) return false;
    if (claim.place && claim.place->gpu == gpu) claim.place.reset();  // the next dispatch finds another
    pool.remove_gpu(gpu);
    measured_lanes.erase(gpu);
    devices.all.erase(gpu);
    out.push_back(DeviceChange{gpu, Kind::kGone});
    return true;
  });
}

}  // namespace fairlead
