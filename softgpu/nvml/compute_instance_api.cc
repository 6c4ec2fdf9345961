// Compute instances: how the SMs of a GPU instance are split.
#include <array>

#include "softgpu/nvml/mig.h"

using softgpu::ComputeInstance;
using softgpu::find_instance;
using softgpu::GpuInstance;
using softgpu::GpuSettings;
using softgpu::MigState;
using softgpu::NvmlState;
using softgpu::partition_of;
using softgpu::write_text;

namespace {

// Slices of each profile; profile and id are the same number.
constexpr std::array<unsigned, NVML_COMPUTE_INSTANCE_PROFILE_COUNT> kSlices = {1, 2, 3, 4, 7, 8, 6, 0, 0};

unsigned id_of(unsigned slices) {
  unsigned id = 0;
  while (id < kSlices.size() && kSlices[id] != slices) ++id;
  return id;
}

// The instance, and that it can have a compute instance of profile `id`.
nvmlReturn_t find_profile(nvmlGpuInstance_t handle, unsigned id, std::optional<GpuSettings>& settings,
                          const GpuInstance*& found) {
  SOFTGPU_NVML_TRY(find_instance(handle, settings, found));
  if (id >= kSlices.size()) return NVML_ERROR_INVALID_ARGUMENT;
  return MigState::possible_compute_starts(*found, kSlices[id]).empty() ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t find_compute(nvmlComputeInstance_t handle, std::optional<GpuSettings>& settings,
                          const ComputeInstance*& found) {
  const GpuInstance* instance = nullptr;
  SOFTGPU_NVML_TRY(softgpu::check_instance(handle));
  SOFTGPU_NVML_TRY(find_instance(handle->gpu_instance, settings, instance));
  found = instance->find(handle->id);
  return found != nullptr ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

template <typename Info>
void fill_common(Info& info, const GpuInstance& instance, const softgpu::MigGeometry& geometry, unsigned id) {
  const softgpu::MigProfile& profile = *instance.profile;
  info.id = id;
  info.sliceCount = kSlices[id];
  info.instanceCount = static_cast<unsigned>(MigState::possible_compute_starts(instance, kSlices[id]).size());
  info.multiprocessorCount = geometry.compute_sm_count(profile, kSlices[id]);
  info.sharedCopyEngineCount = profile.copy_engines;
  info.sharedDecoderCount = profile.decoders;
  info.sharedJpegCount = info.sharedOfaCount = profile.has_media() ? 1 : 0;
}

template <typename Info>
nvmlReturn_t fill_versioned(Info& info, const GpuInstance& instance, const softgpu::MigGeometry& geometry,
                            unsigned id) {
  const unsigned version = info.version;
  info = {};
  info.version = version;
  fill_common(info, instance, geometry, id);
  const std::string name = softgpu::instance_name(instance, {0, 0, kSlices[id], {}});
  return write_text("MIG " + name, info.name, sizeof info.name);
}

nvmlReturn_t create(nvmlGpuInstance_t handle, unsigned id, std::optional<unsigned> start,
                    nvmlComputeInstance_t* compute) {
  std::optional<GpuSettings> settings;
  const GpuInstance* found = nullptr;
  SOFTGPU_NVML_TRY(find_profile(handle, id, settings, found));
  if (compute == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const auto created = partition_of(handle->gpu).create_compute(handle->id, kSlices[id], start);
  if (!created) return softgpu::result_of(created.error());
  *compute = NvmlState::get()->compute_instance(handle, *created);
  return NVML_SUCCESS;
}

}  // namespace

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle, unsigned id, unsigned engines,
                                                          nvmlComputeInstanceProfileInfo_t* info) {
  std::optional<GpuSettings> settings;
  const GpuInstance* found = nullptr;
  SOFTGPU_NVML_TRY(find_profile(handle, id, settings, found));
  if (info == nullptr || engines != NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED) return NVML_ERROR_INVALID_ARGUMENT;
  *info = {};
  fill_common(*info, *found, settings->mig.geometry(), id);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t handle, unsigned id, unsigned engines,
                                                           nvmlComputeInstanceProfileInfo_v2_t* info) {
  std::optional<GpuSettings> settings;
  const GpuInstance* found = nullptr;
  SOFTGPU_NVML_TRY(find_profile(handle, id, settings, found));
  if (info == nullptr || engines != NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED) return NVML_ERROR_INVALID_ARGUMENT;
  const softgpu::MigGeometry& geometry = settings->mig.geometry();
  if (info->version == nvmlComputeInstanceProfileInfo_v2) return fill_versioned(*info, *found, geometry, id);
  if (info->version != nvmlComputeInstanceProfileInfo_v3) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return fill_versioned(*reinterpret_cast<nvmlComputeInstanceProfileInfo_v3_t*>(info), *found, geometry, id);
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle, unsigned id,
                                                                unsigned* count) {
  std::optional<GpuSettings> settings;
  const GpuInstance* found = nullptr;
  SOFTGPU_NVML_TRY(find_profile(handle, id, settings, found));
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(MigState::free_compute_starts(*found, kSlices[id]).size());
  return NVML_SUCCESS;
}

// Without an array only their count.
nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t handle, unsigned id,
                                                                 nvmlComputeInstancePlacement_t* placements,
                                                                 unsigned* count) {
  std::optional<GpuSettings> settings;
  const GpuInstance* found = nullptr;
  SOFTGPU_NVML_TRY(find_profile(handle, id, settings, found));
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const std::vector<unsigned> starts = MigState::possible_compute_starts(*found, kSlices[id]);
  *count = static_cast<unsigned>(starts.size());
  if (placements == nullptr) return NVML_SUCCESS;
  for (const unsigned start : starts) *placements++ = {start, kSlices[id]};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle, unsigned id,
                                                  nvmlComputeInstance_t* compute) {
  return create(handle, id, std::nullopt, compute);
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t handle, unsigned id,
                                                               const nvmlComputeInstancePlacement_t* placement,
                                                               nvmlComputeInstance_t* compute) {
  SOFTGPU_NVML_TRY(softgpu::check_instance(handle));
  if (id >= kSlices.size() || placement == nullptr || placement->size != kSlices[id]) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  return create(handle, id, placement->start, compute);
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle) {
  SOFTGPU_NVML_TRY(softgpu::check_instance(handle));
  const nvmlGpuInstance_t parent = handle->gpu_instance;
  const auto destroyed = partition_of(parent->gpu).destroy_compute({parent->id, handle->id});
  return destroyed ? NVML_SUCCESS : softgpu::result_of(destroyed.error());
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned id, nvmlComputeInstance_t* instances,
                                                unsigned* count) {
  std::optional<GpuSettings> settings;
  const GpuInstance* found = nullptr;
  SOFTGPU_NVML_TRY(find_profile(handle, id, settings, found));
  if (instances == nullptr || count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  for (const ComputeInstance& compute : found->compute) {
    if (compute.slices == kSlices[id]) {
      instances[(*count)++] = NvmlState::get()->compute_instance(handle, compute.id);
    }
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned id,
                                                   nvmlComputeInstance_t* compute) {
  std::optional<GpuSettings> settings;
  const GpuInstance* found = nullptr;
  SOFTGPU_NVML_TRY(find_instance(handle, settings, found));
  if (compute == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (found->find(id) == nullptr) return NVML_ERROR_NOT_FOUND;
  *compute = NvmlState::get()->compute_instance(handle, id);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t* info) {
  std::optional<GpuSettings> settings;
  const ComputeInstance* found = nullptr;
  SOFTGPU_NVML_TRY(find_compute(handle, settings, found));
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlGpuInstance_t parent = handle->gpu_instance;
  *info = {parent->gpu, parent, found->id, id_of(found->slices), {found->start, found->slices}};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t* info) {
  return nvmlComputeInstanceGetInfo_v2(handle, info);
}
