#include "softgpu/device/mig/partition.h"

#include <cstdio>
#include <utility>

#include "softgpu/device/device.h"
#include "softgpu/device/files.h"

namespace softgpu {
namespace {

constexpr int kFirstWithoutReset = 9;  // compute capability from which the MIG mode changes without a reset

tl::unexpected<MigError> state_error(const std::string& message) {
  std::fprintf(stderr, "softgpu: %s\n", message.c_str());
  return tl::unexpected(MigError::kState);
}

}  // namespace

// Reads the settings, lets `change` alter them and writes them when it succeeds (or leaves a mode pending).
template <typename Change>
auto Partition::changed(Change change) -> decltype(change(std::declval<GpuSettings&>())) {
  const FolderLock lock(machine_.home);
  auto settings = read_settings(machine_, gpu_);
  if (!settings) return state_error(settings.error());
  auto result = change(*settings);
  if (!result && result.error() != MigError::kResetRequired) return result;
  if (const auto written = write_settings(machine_, gpu_, *settings); !written) return state_error(written.error());
  return result;
}

MigResult<bool> Partition::in_use(const Part& part) const {
  const auto view = DeviceView::open(clients_, part);
  if (!view) return state_error(view.error());
  return (*view)->users().any();
}

MigResult<bool> Partition::gpu_in_use(const GpuSettings& settings) const {
  std::vector<Part> parts = mig_parts(machine_, gpu_, settings.mig);
  parts.push_back(whole_gpu(machine_, gpu_));
  for (const Part& part : parts) {
    const auto used = in_use(part);
    if (!used || *used) return used;
  }
  return false;
}

MigResult<void> Partition::set_mode(bool on) {
  return changed([&](GpuSettings& settings) -> MigResult<void> {
    const auto used = gpu_in_use(settings);
    if (!used) return tl::unexpected(used.error());
    return settings.mig.set_mode(on, *used, machine_.profile(gpu_).compute_major < kFirstWithoutReset);
  });
}

MigResult<void> Partition::reset() {
  return changed([&](GpuSettings& settings) -> MigResult<void> {
    const auto used = gpu_in_use(settings);
    if (!used) return tl::unexpected(used.error());
    if (*used) return tl::unexpected(MigError::kInUse);
    settings.mig.reset();
    return {};
  });
}

MigResult<void> Partition::set_compute_mode(ComputeMode mode) {
  return changed([&](GpuSettings& settings) -> MigResult<void> {
    settings.compute_mode = mode;
    return {};
  });
}

// Files that an earlier instance of the same id left are removed before the settings say that the new one exists.
MigResult<unsigned> Partition::create(const MigProfile& profile, std::optional<unsigned> start) {
  return changed([&](GpuSettings& settings) {
    const auto id = settings.mig.create(profile, start);
    if (id) remove_mig_files(machine_, gpu_, *id);
    return id;
  });
}

MigResult<std::vector<unsigned>> Partition::create_all(const std::vector<const MigProfile*>& profiles) {
  return changed([&](GpuSettings& settings) -> MigResult<std::vector<unsigned>> {
    auto ids = settings.mig.create_all(profiles);
    if (!ids) return ids;
    for (std::size_t i = 0; i < ids->size(); ++i) {
      const unsigned id = (*ids)[i];
      remove_mig_files(machine_, gpu_, id);
      remove_mig_files(machine_, gpu_, Part::MigIds{id, 0});
      const auto compute = settings.mig.create_compute(id, profiles[i]->compute_slices, random_uuid());
      if (!compute) return tl::unexpected(compute.error());
    }
    return ids;
  });
}

MigResult<unsigned> Partition::create_compute(unsigned gpu_instance, unsigned slices, std::optional<unsigned> start) {
  return changed([&](GpuSettings& settings) {
    const auto id = settings.mig.create_compute(gpu_instance, slices, random_uuid(), start);
    if (id) remove_mig_files(machine_, gpu_, Part::MigIds{gpu_instance, *id});
    return id;
  });
}

MigResult<void> Partition::destroy(unsigned gpu_instance) {
  return changed([&](GpuSettings& settings) { return settings.mig.destroy(gpu_instance); });
}

MigResult<void> Partition::remove_compute(MigState& mig, const Part::MigIds& ids) {
  const GpuInstance* instance = mig.find(ids.gpu_instance);
  const ComputeInstance* compute = instance != nullptr ? instance->find(ids.compute_instance) : nullptr;
  if (compute == nullptr) return tl::unexpected(MigError::kNotFound);
  const auto used = in_use(mig_part(machine_, gpu_, *instance, *compute));
  if (!used) return tl::unexpected(used.error());
  if (*used) return tl::unexpected(MigError::kInUse);
  return mig.destroy_compute(ids.gpu_instance, ids.compute_instance);
}

MigResult<void> Partition::destroy_compute(const Part::MigIds& ids) {
  return changed([&](GpuSettings& settings) { return remove_compute(settings.mig, ids); });
}

MigResult<void> Partition::destroy_with_compute(unsigned gpu_instance) {
  return changed([&](GpuSettings& settings) -> MigResult<void> {
    const GpuInstance* instance = settings.mig.find(gpu_instance);
    if (instance == nullptr) return tl::unexpected(MigError::kNotFound);
    while (!instance->compute.empty()) {
      const auto removed = remove_compute(settings.mig, {gpu_instance, instance->compute.front().id});
      if (!removed) return removed;
    }
    return settings.mig.destroy(gpu_instance);
  });
}

}  // namespace softgpu
