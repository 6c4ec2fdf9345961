// GPU instances: profiles, placements, creating and destroying.
#include <cstring>

#include "softgpu/nvml/mig.h"

using softgpu::check_gpu;
using softgpu::GpuInstance;
using softgpu::GpuSettings;
using softgpu::MigProfile;
using softgpu::NvmlState;
using softgpu::partition_of;
using softgpu::settings_of;
using softgpu::write_text;

namespace {

// How NVML asks for a profile: by its slices and what sets it apart.
unsigned query_of(const MigProfile& profile, unsigned smallest) {
  if (profile.compute_slices == 1 && profile.has_media()) return NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1;
  if (profile.compute_slices == 2 && profile.has_media()) return NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1;
  if (profile.compute_slices == 1 && profile.memory_slices > smallest) return NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2;
  switch (profile.compute_slices) {
    case 1: return NVML_GPU_INSTANCE_PROFILE_1_SLICE;
    case 2: return NVML_GPU_INSTANCE_PROFILE_2_SLICE;
    case 3: return NVML_GPU_INSTANCE_PROFILE_3_SLICE;
    case 4: return NVML_GPU_INSTANCE_PROFILE_4_SLICE;
    case 6: return NVML_GPU_INSTANCE_PROFILE_6_SLICE;
    case 7: return NVML_GPU_INSTANCE_PROFILE_7_SLICE;
    case 8: return NVML_GPU_INSTANCE_PROFILE_8_SLICE;
    default: return NVML_GPU_INSTANCE_PROFILE_COUNT;
  }
}

// The settings of a GPU that has MIG, turned on or not.
nvmlReturn_t mig_settings(nvmlDevice_t device, std::optional<GpuSettings>& settings) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  SOFTGPU_NVML_TRY(settings_of(device, settings));
  return settings->mig.geometry().supported() ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t find_query(nvmlDevice_t device, unsigned query, const MigProfile*& profile) {
  std::optional<GpuSettings> settings;
  SOFTGPU_NVML_TRY(check_gpu(device));
  if (query >= NVML_GPU_INSTANCE_PROFILE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  SOFTGPU_NVML_TRY(mig_settings(device, settings));
  const softgpu::MigGeometry& geometry = settings->mig.geometry();
  for (const MigProfile& known : geometry.profiles) {
    if (query_of(known, geometry.profiles.front().memory_slices) != query) continue;
    profile = &known;
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_SUPPORTED;  // a profile of other GPUs
}

nvmlReturn_t find_id(nvmlDevice_t device, unsigned id, std::optional<GpuSettings>& settings,
                     const MigProfile*& profile) {
  SOFTGPU_NVML_TRY(mig_settings(device, settings));
  profile = settings->mig.geometry().find_id(id);
  return profile != nullptr ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

// All versions of the structure name these fields alike.
template <typename Info>
void fill_common(Info& info, const MigProfile& profile) {
  info.id = profile.id;
  info.sliceCount = profile.compute_slices;
  info.instanceCount = profile.max_instances();
  info.multiprocessorCount = profile.sm_count;
  info.copyEngineCount = profile.copy_engines;
  info.decoderCount = profile.decoders;
  info.ofaCount = info.jpegCount = profile.has_media() ? 1 : 0;
  info.memorySizeMB = profile.memory_mib;
}

template <typename Info>
nvmlReturn_t fill_versioned(Info& info, const MigProfile& profile) {
  const unsigned version = info.version;
  info = {};
  info.version = version;
  fill_common(info, profile);
  return write_text("MIG " + profile.name, info.name, sizeof info.name);
}

nvmlReturn_t fill_by_version(nvmlGpuInstanceProfileInfo_v2_t* info, const MigProfile& profile) {
  if (info->version == nvmlGpuInstanceProfileInfo_v2) return fill_versioned(*info, profile);
  if (info->version != nvmlGpuInstanceProfileInfo_v3) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return fill_versioned(*reinterpret_cast<nvmlGpuInstanceProfileInfo_v3_t*>(info), profile);
}

nvmlReturn_t create(nvmlDevice_t device, unsigned id, std::optional<unsigned> start, nvmlGpuInstance_t* instance) {
  std::optional<GpuSettings> settings;
  const MigProfile* profile = nullptr;
  SOFTGPU_NVML_TRY(find_id(device, id, settings, profile));
  if (instance == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const auto created = partition_of(device).create(*profile, start);
  if (!created) return softgpu::result_of(created.error());
  *instance = NvmlState::get()->gpu_instance(device, *created);
  return NVML_SUCCESS;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned query,
                                                 nvmlGpuInstanceProfileInfo_t* info) {
  const MigProfile* profile = nullptr;
  SOFTGPU_NVML_TRY(find_query(device, query, profile));
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *info = {};
  fill_common(*info, *profile);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned query,
                                                  nvmlGpuInstanceProfileInfo_v2_t* info) {
  const MigProfile* profile = nullptr;
  SOFTGPU_NVML_TRY(find_query(device, query, profile));
  return info != nullptr ? fill_by_version(info, *profile) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned id,
                                                      nvmlGpuInstanceProfileInfo_v2_t* info) {
  std::optional<GpuSettings> settings;
  const MigProfile* profile = nullptr;
  SOFTGPU_NVML_TRY(find_id(device, id, settings, profile));
  return info != nullptr ? fill_by_version(info, *profile) : NVML_ERROR_INVALID_ARGUMENT;
}

// The starts that the profile has on an empty GPU. Without an array only their count.
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned id,
                                                           nvmlGpuInstancePlacement_t* placements, unsigned* count) {
  std::optional<GpuSettings> settings;
  const MigProfile* profile = nullptr;
  SOFTGPU_NVML_TRY(find_id(device, id, settings, profile));
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(profile->starts.size());
  if (placements == nullptr) return NVML_SUCCESS;
  for (const unsigned start : profile->starts) *placements++ = {start, profile->memory_slices};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned id,
                                                        nvmlGpuInstancePlacement_t* placements, unsigned* count) {
  return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, count);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned id, unsigned* count) {
  std::optional<GpuSettings> settings;
  const MigProfile* profile = nullptr;
  SOFTGPU_NVML_TRY(find_id(device, id, settings, profile));
  if (!settings->mig.enabled()) return NVML_ERROR_NOT_SUPPORTED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = settings->mig.remaining(*profile);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned id, nvmlGpuInstance_t* instance) {
  return create(device, id, std::nullopt, instance);
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned id,
                                                      const nvmlGpuInstancePlacement_t* placement,
                                                      nvmlGpuInstance_t* instance) {
  std::optional<GpuSettings> settings;
  const MigProfile* profile = nullptr;
  SOFTGPU_NVML_TRY(find_id(device, id, settings, profile));
  if (placement == nullptr || placement->size != profile->memory_slices) return NVML_ERROR_INVALID_ARGUMENT;
  return create(device, id, placement->start, instance);
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance) {
  SOFTGPU_NVML_TRY(softgpu::check_instance(instance));
  const auto destroyed = partition_of(instance->gpu).destroy(instance->id);
  return destroyed ? NVML_SUCCESS : softgpu::result_of(destroyed.error());
}

// The array must have room for as many as fit on an empty GPU.
nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned id, nvmlGpuInstance_t* instances,
                                       unsigned* count) {
  std::optional<GpuSettings> settings;
  const MigProfile* profile = nullptr;
  SOFTGPU_NVML_TRY(find_id(device, id, settings, profile));
  if (!settings->mig.enabled()) return NVML_ERROR_NOT_SUPPORTED;
  if (instances == nullptr || count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  for (const GpuInstance& instance : settings->mig.instances()) {
    if (instance.profile == profile) instances[(*count)++] = NvmlState::get()->gpu_instance(device, instance.id);
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned id, nvmlGpuInstance_t* instance) {
  std::optional<GpuSettings> settings;
  SOFTGPU_NVML_TRY(mig_settings(device, settings));
  if (!settings->mig.enabled()) return NVML_ERROR_NOT_SUPPORTED;
  if (instance == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (settings->mig.find(id) == nullptr) return NVML_ERROR_NOT_FOUND;
  *instance = NvmlState::get()->gpu_instance(device, id);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t* info) {
  std::optional<GpuSettings> settings;
  const GpuInstance* found = nullptr;
  SOFTGPU_NVML_TRY(softgpu::find_instance(instance, settings, found));
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *info = {instance->gpu, found->id, found->profile->id, {found->start, found->profile->memory_slices}};
  return NVML_SUCCESS;
}
