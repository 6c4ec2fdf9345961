// What the MIG queries share: NVML's words for the refusals of the MIG state machine, and finding what a handle names.
#pragma once

#include "softgpu/nvml/nvml_state.h"

namespace softgpu {

nvmlReturn_t result_of(MigError error);

// The changes of a GPU's settings.
inline Partition partition_of(nvmlDevice_t gpu) {
  return Partition(NvmlState::get()->machine(), NvmlState::get()->clients(), gpu->index());
}

// UNINITIALIZED; INVALID_ARGUMENT when the handle was never given out.
template <typename Handle>
nvmlReturn_t check_instance(Handle handle) {
  NvmlState* state = NvmlState::get();
  if (state == nullptr) return NVML_ERROR_UNINITIALIZED;
  return state->knows(handle) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

// The instance of a handle, in `settings` as they are now. NOT_FOUND when it was destroyed.
nvmlReturn_t find_instance(nvmlGpuInstance_t handle, std::optional<GpuSettings>& settings, const GpuInstance*& found);

}  // namespace softgpu
