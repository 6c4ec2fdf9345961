// How much a device is used: utilisation, samples, field values. As on hardware there is none of it for MIG devices and
// for GPUs in MIG mode.
#include <algorithm>

#include "softgpu/nvml/power.h"

using softgpu::between;
using softgpu::check_gpu;

namespace {

constexpr unsigned kSamplePeriodUs = 1'000'000;

nvmlReturn_t check_utilization(nvmlDevice_t device) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  std::optional<softgpu::GpuSettings> settings;
  SOFTGPU_NVML_TRY(softgpu::settings_of(device, settings));
  return settings->mig.enabled() ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

unsigned percent_of_bandwidth(nvmlDevice_t device, double bytes_per_second) {
  const double bandwidth = static_cast<double>(device->profile().memory_bandwidth_gb_s) * 1e9;
  return between(0, 100, std::min(1.0, bytes_per_second / bandwidth));
}

// What a sample of this type says of one moment.
nvmlReturn_t sample_value(nvmlDevice_t device, nvmlSamplingType_t type, const softgpu::BusyMeter::Moment& moment,
                          unsigned& value) {
  const softgpu::Profile& profile = device->profile();
  switch (type) {
    case NVML_TOTAL_POWER_SAMPLES:
      value = between(profile.power_idle_watts * 1000, profile.power_max_watts * 1000, moment.busy);
      return NVML_SUCCESS;
    case NVML_GPU_UTILIZATION_SAMPLES: value = between(0, 100, moment.busy); return NVML_SUCCESS;
    case NVML_MEMORY_UTILIZATION_SAMPLES:
      value = percent_of_bandwidth(device, moment.bytes_per_second);
      return NVML_SUCCESS;
    case NVML_PROCESSOR_CLK_SAMPLES: value = static_cast<unsigned>(profile.clock_mhz); return NVML_SUCCESS;
    case NVML_MEMORY_CLK_SAMPLES: value = static_cast<unsigned>(profile.memory_clock_mhz); return NVML_SUCCESS;
    default: return NVML_ERROR_NOT_SUPPORTED;
  }
}

nvmlReturn_t set(nvmlFieldValue_t& field, unsigned value) {
  field.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
  field.value.uiVal = value;
  return NVML_SUCCESS;
}

nvmlReturn_t set_long(nvmlFieldValue_t& field, unsigned long long value) {
  field.valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
  field.value.ullVal = value;
  return NVML_SUCCESS;
}

nvmlReturn_t fill_field(nvmlDevice_t device, nvmlFieldValue_t& field) {
  const unsigned id = field.fieldId;
  if (id >= NVML_FI_DEV_ECC_SBE_VOL_TOTAL && id <= NVML_FI_DEV_ECC_DBE_AGG_CBU) return set_long(field, 0);
  const bool remaps = device->profile().compute_major >= 8;
  if (id >= NVML_FI_DEV_RETIRED_SBE && id <= NVML_FI_DEV_RETIRED_PENDING && !remaps) return set(field, 0);
  if (id >= NVML_FI_DEV_REMAPPED_COR && id <= NVML_FI_DEV_REMAPPED_FAILURE && remaps) return set(field, 0);
  switch (id) {
    case NVML_FI_DEV_ECC_CURRENT:
    case NVML_FI_DEV_ECC_PENDING: return set(field, 1);
    case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION: return set_long(field, softgpu::energy_millijoules(device));
    case NVML_FI_DEV_NVLINK_LINK_COUNT:
    case NVML_FI_DEV_PCIE_REPLAY_COUNTER: return set(field, 0);
    case NVML_FI_DEV_POWER_AVERAGE:
    case NVML_FI_DEV_POWER_INSTANT: return set(field, softgpu::power_milliwatts(device));
    case NVML_FI_DEV_POWER_MIN_LIMIT:
    case NVML_FI_DEV_POWER_MAX_LIMIT:
    case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
    case NVML_FI_DEV_POWER_CURRENT_LIMIT: return set(field, softgpu::limit_milliwatts(device));
    case NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE: return set(field, 1);
    default: return NVML_ERROR_NOT_SUPPORTED;
  }
}

nvmlReturn_t no_codec(nvmlDevice_t device, unsigned* percent, unsigned* period_us) {
  SOFTGPU_NVML_TRY(check_utilization(device));
  if (percent == nullptr || period_us == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *percent = 0;
  *period_us = kSamplePeriodUs;
  return NVML_SUCCESS;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  SOFTGPU_NVML_TRY(check_utilization(device));
  if (utilization == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const auto sample = device->view->sample();
  utilization->gpu = between(0, 100, sample.busy);
  utilization->memory = percent_of_bandwidth(device, sample.bytes_per_second);
  return NVML_SUCCESS;
}

// Periods of 20 ms that are over, oldest first, that ended later than `since`; NOT_FOUND when there is none.
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long since,
                                  nvmlValueType_t* value_type, unsigned* count, nvmlSample_t* samples) {
  SOFTGPU_NVML_TRY(check_utilization(device));
  if (value_type == nullptr || count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  std::vector<nvmlSample_t> made;
  for (const auto& moment : device->view->meter().history(softgpu::monotonic_ns())) {
    nvmlSample_t sample = {softgpu::timestamp_us(moment.end_ns), {}};
    SOFTGPU_NVML_TRY(sample_value(device, type, moment, sample.sampleValue.uiVal));
    if (sample.timeStamp > since) made.push_back(sample);
  }
  *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
  if (made.empty()) return NVML_ERROR_NOT_FOUND;
  const auto room = samples != nullptr ? *count : made.size();
  *count = static_cast<unsigned>(std::min<std::size_t>(room, made.size()));
  if (samples != nullptr) std::copy(made.end() - *count, made.end(), samples);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  SOFTGPU_NVML_TRY(check_gpu(device, values));
  if (count <= 0) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < count; ++i) {
    values[i].timestamp = static_cast<long long>(softgpu::timestamp_us(softgpu::monotonic_ns()));
    values[i].latencyUsec = 0;
    values[i].value = {};
    values[i].nvmlReturn = fill_field(device, values[i]);
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned* percent, unsigned* period_us) {
  return no_codec(device, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned* percent, unsigned* period_us) {
  return no_codec(device, percent, period_us);
}
