// Modes of a GPU: compute mode, persistence, MIG.
#include "softgpu/nvml/mig.h"

using softgpu::check_gpu;
using softgpu::MigError;
using softgpu::partition_of;
using softgpu::settings_of;

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t* mode) {
  SOFTGPU_NVML_TRY(check_gpu(device, mode));
  std::optional<softgpu::GpuSettings> settings;
  SOFTGPU_NVML_TRY(settings_of(device, settings));
  *mode = static_cast<nvmlComputeMode_t>(settings->compute_mode);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  switch (mode) {
    case NVML_COMPUTEMODE_DEFAULT:
    case NVML_COMPUTEMODE_PROHIBITED:
    case NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: break;
    case NVML_COMPUTEMODE_EXCLUSIVE_THREAD: return NVML_ERROR_NOT_SUPPORTED;  // gone since CUDA 8
    default: return NVML_ERROR_INVALID_ARGUMENT;
  }
  const auto changed = partition_of(device).set_compute_mode(static_cast<softgpu::ComputeMode>(mode));
  return changed ? NVML_SUCCESS : softgpu::result_of(changed.error());
}

// The state folder outlives the processes: persistence is always on.
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  SOFTGPU_NVML_TRY(check_gpu(device, mode));
  *mode = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  return mode == NVML_FEATURE_ENABLED ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  SOFTGPU_NVML_TRY(check_gpu(device, current));
  if (pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  std::optional<softgpu::GpuSettings> settings;
  SOFTGPU_NVML_TRY(settings_of(device, settings));
  if (!settings->mig.geometry().supported()) return NVML_ERROR_NOT_SUPPORTED;
  *current = settings->mig.enabled() ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
  *pending = settings->mig.pending() ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
  return NVML_SUCCESS;
}

// A mode that waits for a reset is a success whose activation says why it is not in effect.
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned mode, nvmlReturn_t* activation) {
  SOFTGPU_NVML_TRY(check_gpu(device, activation));
  if (mode > NVML_DEVICE_MIG_ENABLE) return NVML_ERROR_INVALID_ARGUMENT;
  const auto changed = partition_of(device).set_mode(mode == NVML_DEVICE_MIG_ENABLE);
  *activation = changed ? NVML_SUCCESS : softgpu::result_of(changed.error());
  if (changed) return NVML_SUCCESS;
  if (changed.error() != MigError::kResetRequired) return *activation;
  *activation = NVML_ERROR_IN_USE;  // the reset that NVML tries by itself is what fails
  return NVML_SUCCESS;
}
