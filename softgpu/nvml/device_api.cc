// Devices: identity, memory, use.
#include <strings.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "softgpu/device/busy_meter.h"
#include "softgpu/nvml/nvml_state.h"

using softgpu::check_device;
using softgpu::NvmlState;
using softgpu::write_text;

namespace {

const softgpu::Profile& profile_of(nvmlDevice_t device) {
  return device->machine->profile(device->index);
}

double busy_of(nvmlDevice_t device) {
  return device->view->sample().busy;
}

// A value that rises with use from an idle to a highest value.
unsigned between(std::uint64_t idle, std::uint64_t most, double busy) {
  return static_cast<unsigned>(static_cast<double>(idle) +
                               busy * (static_cast<double>(most) - static_cast<double>(idle)) + 0.5);
}

// NVML writes the PCI domain with eight digits.
std::string bus_id(unsigned index) {
  return "0000" + softgpu::pci_bus_id(index);
}

struct MemoryUse {
  unsigned long long total, used;
};

MemoryUse memory_of(nvmlDevice_t device) {
  return {device->view->control().page_count * softgpu::kPageBytes, device->view->use().total * softgpu::kPageBytes};
}

}  // namespace

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  NvmlState* state = NvmlState::get();
  if (state == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(state->devices().size());
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  NvmlState* state = NvmlState::get();
  if (state == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || index >= state->devices().size()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = state->devices()[index].get();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  NvmlState* state = NvmlState::get();
  if (state == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (uuid == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (const auto& known : state->devices()) {
    if (softgpu::uuid_text(state->machine(), known->index) != uuid) continue;
    *device = known.get();
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
  NvmlState* state = NvmlState::get();
  if (state == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (id == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (const auto& known : state->devices()) {
    const std::string full = bus_id(known->index);
    if (::strcasecmp(id, full.c_str()) != 0 && ::strcasecmp(id, full.c_str() + 4) != 0) continue;
    *device = known.get();
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (index == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *index = device->index;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* minor) {
  return nvmlDeviceGetIndex(device, minor);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  SOFTGPU_NVML_TRY(check_device(device));
  return write_text(profile_of(device).name, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  SOFTGPU_NVML_TRY(check_device(device));
  return write_text(softgpu::uuid_text(*device->machine, device->index), uuid, length);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (pci == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *pci = {};
  pci->bus = device->index + 1;
  SOFTGPU_NVML_TRY(write_text(softgpu::pci_bus_id(device->index), pci->busIdLegacy, sizeof pci->busIdLegacy));
  return write_text(bus_id(device->index), pci->busId, sizeof pci->busId);
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (major == nullptr || minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *major = profile_of(device).compute_major;
  *minor = profile_of(device).compute_minor;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned* cores) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (cores == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *cores = static_cast<unsigned>(profile_of(device).sm_count * profile_of(device).cores_per_sm);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const MemoryUse use = memory_of(device);
  *memory = {use.total, use.total - use.used, use.used};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const MemoryUse use = memory_of(device);
  *memory = {nvmlMemory_v2, use.total, 0, use.total - use.used, use.used};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (utilization == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const auto sample = device->view->sample();
  const double bandwidth = static_cast<double>(profile_of(device).memory_bandwidth_gb_s) * 1e9;
  utilization->gpu = between(0, 100, sample.busy);
  utilization->memory = between(0, 100, std::min(1.0, sample.bytes_per_second / bandwidth));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* milliwatts) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (milliwatts == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const softgpu::Profile& profile = profile_of(device);
  *milliwatts = between(profile.power_idle_watts * 1000, profile.power_max_watts * 1000, busy_of(device));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned* milliwatts) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (milliwatts == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *milliwatts = static_cast<unsigned>(profile_of(device).power_max_watts) * 1000;
  return NVML_SUCCESS;
}

// What the use so far took above idling; a device has no time at which it was switched on.
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* millijoules) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (millijoules == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const softgpu::Profile& profile = profile_of(device);
  *millijoules = device->view->meter().total_busy_ns() / 1'000'000 * profile.power_max_watts;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned* celsius) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (celsius == nullptr || sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  const softgpu::Profile& profile = profile_of(device);
  *celsius = between(profile.temperature_idle_celsius, profile.temperature_max_celsius, busy_of(device));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* megahertz) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (megahertz == nullptr || type < NVML_CLOCK_GRAPHICS || type > NVML_CLOCK_VIDEO) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  const softgpu::Profile& profile = profile_of(device);
  *megahertz = static_cast<unsigned>(type == NVML_CLOCK_MEM ? profile.memory_clock_mhz : profile.clock_mhz);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* megahertz) {
  return nvmlDeviceGetClockInfo(device, type, megahertz);
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t* mode) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (mode == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *mode = NVML_COMPUTEMODE_DEFAULT;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (mode == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *mode = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (current == nullptr || pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (profile_of(device).compute_major < 8) return NVML_ERROR_NOT_SUPPORTED;
  *current = NVML_DEVICE_MIG_DISABLE;
  *pending = NVML_DEVICE_MIG_DISABLE;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* count) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}
