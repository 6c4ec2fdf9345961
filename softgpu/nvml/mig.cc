#include "softgpu/nvml/mig.h"

namespace softgpu {

nvmlReturn_t result_of(MigError error) {
  switch (error) {
    case MigError::kNotSupported:
    case MigError::kNotEnabled: return NVML_ERROR_NOT_SUPPORTED;
    case MigError::kInvalid: return NVML_ERROR_INVALID_ARGUMENT;
    case MigError::kInsufficient: return NVML_ERROR_INSUFFICIENT_RESOURCES;
    case MigError::kInUse: return NVML_ERROR_IN_USE;
    case MigError::kResetRequired: return NVML_ERROR_RESET_REQUIRED;
    case MigError::kNotFound: return NVML_ERROR_NOT_FOUND;
    case MigError::kState: return NVML_ERROR_UNKNOWN;
  }
  return NVML_ERROR_UNKNOWN;
}

nvmlReturn_t find_instance(nvmlGpuInstance_t handle, std::optional<GpuSettings>& settings, const GpuInstance*& found) {
  SOFTGPU_NVML_TRY(check_instance(handle));
  SOFTGPU_NVML_TRY(settings_of(handle->gpu, settings));
  found = settings->mig.find(handle->id);
  return found != nullptr ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

}  // namespace softgpu
