// MIG devices: the compute instances as devices.
#include "softgpu/nvml/mig.h"

using softgpu::check_device;
using softgpu::check_gpu;

namespace {

// A live MIG device and an output.
nvmlReturn_t check_mig(nvmlDevice_t device, const void* output) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (!device->is_mig()) return NVML_ERROR_NOT_SUPPORTED;
  return output != nullptr ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

}  // namespace

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned* is_mig) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (is_mig == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *is_mig = device->is_mig() ? 1 : 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned* id) {
  SOFTGPU_NVML_TRY(check_mig(device, id));
  *id = device->part().mig->gpu_instance;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned* id) {
  SOFTGPU_NVML_TRY(check_mig(device, id));
  *id = device->part().mig->compute_instance;
  return NVML_SUCCESS;
}

// 0 for a GPU without MIG; with it the most compute slices, whether MIG mode is on or not.
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* count) {
  SOFTGPU_NVML_TRY(check_gpu(device, count));
  const softgpu::MigGeometry& geometry = device->profile().mig;
  *count = geometry.profiles.empty() ? 0 : geometry.profiles.back().compute_slices;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t* mig) {
  SOFTGPU_NVML_TRY(check_gpu(device, mig));
  unsigned most = 0;
  SOFTGPU_NVML_TRY(nvmlDeviceGetMaxMigDeviceCount(device, &most));
  std::optional<softgpu::GpuSettings> settings;
  SOFTGPU_NVML_TRY(softgpu::settings_of(device, settings));
  if (!settings->mig.enabled()) return NVML_ERROR_NOT_SUPPORTED;
  if (index >= most) return NVML_ERROR_INVALID_ARGUMENT;
  const std::vector<nvmlDevice_t> devices = softgpu::mig_devices_of(device);
  if (index >= devices.size()) return NVML_ERROR_NOT_FOUND;
  *mig = devices[index];
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t* device) {
  SOFTGPU_NVML_TRY(check_mig(mig, device));
  *device = mig->gpu;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t* attributes) {
  SOFTGPU_NVML_TRY(check_mig(device, attributes));
  std::optional<softgpu::GpuSettings> settings;
  SOFTGPU_NVML_TRY(softgpu::settings_of(device, settings));
  const softgpu::GpuInstance* instance = settings->mig.find(device->part().mig->gpu_instance);
  const softgpu::ComputeInstance* compute = instance ? instance->find(device->part().mig->compute_instance) : nullptr;
  if (compute == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const softgpu::MigProfile& profile = *instance->profile;
  const unsigned media = profile.has_media() ? 1 : 0;
  *attributes = {static_cast<unsigned>(device->profile().sm_count),
                 profile.copy_engines,
                 profile.decoders,
                 0,
                 media,
                 media,
                 profile.compute_slices,
                 compute->slices,
                 profile.memory_mib};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t* attributes) {
  return nvmlDeviceGetAttributes_v2(device, attributes);
}
