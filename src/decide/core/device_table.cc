#include "decide/core/device_table.h"

#include <utility>

#include "base/check.h"

namespace fairlead {

void DeviceTable::add(const GpuSpec& gpu, std::size_t slots) {
  Device device{.health = GpuHealth(gpu.has_daemon), .slots = std::nullopt};
  if (gpu.is_dynamic) device.slots.emplace(slots);
  const bool is_new = all_.emplace(gpu.gpu, std::move(device)).second;
  FL_CHECK(is_new, "GPU {} is there already", gpu.gpu.value());
}

DeviceTable::Device* DeviceTable::present(GpuId gpu) {
  const auto device = all_.find(gpu);
  return device == all_.end() || device->second.goes ? nullptr : &device->second;
}

bool DeviceTable::is_present(GpuId gpu) const {
  const auto device = all_.find(gpu);
  return device != all_.end() && !device->second.goes;
}

std::optional<GpuRemedy> DeviceTable::step(Instant now, const DeviceSample& sample) {
  Device* const device = present(sample.gpu);
  if (device == nullptr) return std::nullopt;
  if (!sample.failure.empty()) return device->health.device_fails(now, sample.failure);
  return device->health.device_answers(now);
}

std::optional<GpuRemedy> DeviceTable::step(Instant, const DeviceFault& fault) {
  Device* const device = present(fault.gpu);
  return device == nullptr ? std::nullopt : device->health.xid(fault.xid);
}

std::optional<GpuRemedy> DeviceTable::step(Instant now, const DeviceEmptied& emptied) {
  Device* const device = present(emptied.gpu);
  return device == nullptr ? std::nullopt : device->health.emptied(now);
}

std::optional<GpuRemedy> DeviceTable::step(Instant, const DaemonSeen& seen) {
  Device* const device = present(seen.gpu);
  return device == nullptr ? std::nullopt : device->health.daemon(seen.state);
}

std::optional<GpuRemedy> DeviceTable::step(Instant now, const DaemonStarted& started) {
  Device* const device = present(started.gpu);
  return device == nullptr ? std::nullopt : device->health.daemon_started(now, started.ok);
}

// Who took it from service gives it back for himself alone.
bool DeviceTable::may_serve(GpuId gpu) const {
  const Device& device = all_.at(gpu);
  return !device.goes && !device.is_withheld && device.health.state() == GpuState::kServing;
}

std::optional<std::size_t> DeviceTable::follow_load(Instant now, GpuId gpu, const DynamicSlots::Sample& load) {
  std::optional<DynamicSlots>& slots = all_.at(gpu).slots;
  return slots ? std::optional(slots->update(now, load)) : std::nullopt;
}

bool DeviceTable::leave(GpuId gpu) {
  Device* const device = present(gpu);
  if (device == nullptr) return false;
  device->goes = true;
  going_.push_back(gpu);
  return true;
}

GpuState DeviceTable::state(GpuId gpu) const {
  const Device& device = all_.at(gpu);
  return device.goes ? GpuState::kDraining : device.health.state();
}

std::string DeviceTable::reason(GpuId gpu) const {
  const Device& device = all_.at(gpu);
  return device.goes ? "it is no longer there" : device.health.reason();
}

}  // namespace fairlead
