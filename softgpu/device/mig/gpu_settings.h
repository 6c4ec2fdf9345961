// What can be changed about a GPU while the machine exists: its compute mode and its MIG partition. The file
// `deviceN.settings` holds it as text and is replaced as a whole, so that a process killed in the middle of a change
// leaves the old settings or the new ones.
//
// Example of a file:
//   compute_mode = 0
//   mig = 1 1                                 mode now and after the next reset
//   gpu_instance_9 = 1g.5gb 2                 id = profile, first memory slice
//   compute_instance_9_0 = 0 1 6f1c...        ids = first compute slice, slices, UUID
#pragma once

#include "softgpu/device/machine.h"
#include "softgpu/device/mig/mig_state.h"

namespace softgpu {

// Which processes may have contexts. The values are CUDA's and NVML's.
enum class ComputeMode {
  kDefault = 0,
  kProhibited = 2,
  kExclusiveProcess = 3,
};

struct GpuSettings {
  ComputeMode compute_mode = ComputeMode::kDefault;
  MigState mig;
};

// What the profile of GPU `index` can be cut into. Lives as long as `machine`.
const MigGeometry& mig_geometry(const Machine& machine, unsigned index);

// The settings as they are now; the defaults while nothing was changed. Error: the file is damaged.
Result<GpuSettings> read_settings(const Machine& machine, unsigned index);

// REQUIRES: a FolderLock on the machine's folder (files.h), held since the settings were read.
Status write_settings(const Machine& machine, unsigned index, const GpuSettings& settings);

}  // namespace softgpu
