// Power, temperature and clocks. Power and temperature rise with use between the profile's bounds; clocks are constant.
#include <vector>

#include "softgpu/nvml/power.h"

using softgpu::busy_of;
using softgpu::check_gpu;
using softgpu::limit_milliwatts;
using softgpu::power_milliwatts;

namespace {

constexpr unsigned kClockStepMhz = 15;
constexpr unsigned kLowestClockMhz = 210;
constexpr unsigned kSlowdownAboveMax = 5;  // degrees above the highest temperature in use
constexpr unsigned kShutdownAboveMax = 10;

nvmlReturn_t clock_of(nvmlDevice_t device, nvmlClockType_t type, unsigned* megahertz) {
  SOFTGPU_NVML_TRY(check_gpu(device, megahertz));
  if (type > NVML_CLOCK_VIDEO) return NVML_ERROR_INVALID_ARGUMENT;
  const softgpu::Profile& profile = device->profile();
  *megahertz = static_cast<unsigned>(type == NVML_CLOCK_MEM ? profile.memory_clock_mhz : profile.clock_mhz);
  return NVML_SUCCESS;
}

nvmlReturn_t limit(nvmlDevice_t device, unsigned* milliwatts) {
  SOFTGPU_NVML_TRY(check_gpu(device, milliwatts));
  *milliwatts = limit_milliwatts(device);
  return NVML_SUCCESS;
}

unsigned celsius_of(nvmlDevice_t device) {
  const softgpu::Profile& profile = device->profile();
  return softgpu::between(profile.temperature_idle_celsius, profile.temperature_max_celsius, busy_of(device));
}

}  // namespace

namespace softgpu {

unsigned between(std::uint64_t idle, std::uint64_t most, double busy) {
  return static_cast<unsigned>(static_cast<double>(idle) +
                               busy * (static_cast<double>(most) - static_cast<double>(idle)) + 0.5);
}

unsigned power_milliwatts(nvmlDevice_t device) {
  const Profile& profile = device->profile();
  return between(profile.power_idle_watts * 1000, profile.power_max_watts * 1000, busy_of(device));
}

unsigned limit_milliwatts(nvmlDevice_t device) {
  return static_cast<unsigned>(device->profile().power_max_watts) * 1000;
}

// What the use so far took above idling; a device has no time at which it was switched on.
unsigned long long energy_millijoules(nvmlDevice_t device) {
  return device->view->meter().total_busy_ns() / 1'000'000 * device->profile().power_max_watts;
}

}  // namespace softgpu

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* milliwatts) {
  SOFTGPU_NVML_TRY(check_gpu(device, milliwatts));
  *milliwatts = power_milliwatts(device);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return limit(device, milliwatts);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return limit(device, milliwatts);
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return limit(device, milliwatts);
}

// The limit cannot be changed.
nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned* low, unsigned* high) {
  SOFTGPU_NVML_TRY(limit(device, low));
  return limit(device, high);
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  SOFTGPU_NVML_TRY(check_gpu(device, mode));
  *mode = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t device, nvmlPowerSource_t* source) {
  SOFTGPU_NVML_TRY(check_gpu(device, source));
  *source = NVML_POWER_SOURCE_AC;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* millijoules) {
  SOFTGPU_NVML_TRY(check_gpu(device, millijoules));
  *millijoules = softgpu::energy_millijoules(device);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned* celsius) {
  SOFTGPU_NVML_TRY(check_gpu(device, celsius));
  if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  *celsius = celsius_of(device);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t* temperature) {
  SOFTGPU_NVML_TRY(check_gpu(device, temperature));
  if (temperature->version != nvmlTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (temperature->sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  temperature->temperature = static_cast<int>(celsius_of(device));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t threshold,
                                               unsigned* celsius) {
  SOFTGPU_NVML_TRY(check_gpu(device, celsius));
  const auto highest = static_cast<unsigned>(device->profile().temperature_max_celsius);
  switch (threshold) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN: *celsius = highest + kShutdownAboveMax; return NVML_SUCCESS;
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN: *celsius = highest + kSlowdownAboveMax; return NVML_SUCCESS;
    case NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX: *celsius = highest; return NVML_SUCCESS;
    default:
      return threshold < NVML_TEMPERATURE_THRESHOLD_COUNT ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
  }
}

// The modelled GPUs are cooled by their server.
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned* percent) {
  SOFTGPU_NVML_TRY(check_gpu(device, percent));
  return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned, unsigned* percent) {
  return nvmlDeviceGetFanSpeed(device, percent);
}

nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned* count) {
  SOFTGPU_NVML_TRY(check_gpu(device, count));
  *count = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* megahertz) {
  return clock_of(device, type, megahertz);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* megahertz) {
  return clock_of(device, type, megahertz);
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id, unsigned* megahertz) {
  if (id > NVML_CLOCK_ID_CUSTOMER_BOOST_MAX) return NVML_ERROR_INVALID_ARGUMENT;
  return clock_of(device, type, megahertz);
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned* megahertz) {
  return clock_of(device, type, megahertz);
}

nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned* megahertz) {
  return clock_of(device, type, megahertz);
}

nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t type, unsigned* megahertz) {
  return clock_of(device, type, megahertz);
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned* count, unsigned* megahertz) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  return softgpu::write_list({static_cast<unsigned>(device->profile().memory_clock_mhz)}, count, megahertz);
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned memory_clock, unsigned* count,
                                                  unsigned* megahertz) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  if (memory_clock != device->profile().memory_clock_mhz) return NVML_ERROR_NOT_FOUND;
  std::vector<unsigned> clocks;
  auto clock = static_cast<unsigned>(device->profile().clock_mhz);
  for (clocks.push_back(clock); clock >= kLowestClockMhz + kClockStepMhz; clocks.push_back(clock)) {
    clock -= kClockStepMhz;
  }
  return softgpu::write_list(clocks, count, megahertz);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t* state) {
  SOFTGPU_NVML_TRY(check_gpu(device, state));
  *state = NVML_PSTATE_0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t* state) {
  return nvmlDeviceGetPerformanceState(device, state);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* reasons) {
  SOFTGPU_NVML_TRY(check_gpu(device, reasons));
  *reasons = busy_of(device) == 0 ? nvmlClocksEventReasonGpuIdle : nvmlClocksEventReasonNone;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device, unsigned long long* reasons) {
  SOFTGPU_NVML_TRY(check_gpu(device, reasons));
  *reasons = nvmlClocksEventReasonGpuIdle;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}
