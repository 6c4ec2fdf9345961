// Functions that the library has on hardware, too, and that answer NOT_SUPPORTED for GPUs like the modelled ones, for
// Linux, or for want of what they ask about (NVLink, fans, video engines, InfoROM). Monitors look the symbols up and
// take a missing one for a library that does not fit. All have the device as the first argument and ignore the others.
#include "softgpu/nvml/nvml_state.h"

#define SOFTGPU_NVML_UNSUPPORTED(name)                                                      \
  extern "C" __attribute__((visibility("default"))) nvmlReturn_t name(nvmlDevice_t device); \
  nvmlReturn_t name(nvmlDevice_t device) {                                                  \
    SOFTGPU_NVML_TRY(softgpu::check_device(device));                                        \
    return NVML_ERROR_NOT_SUPPORTED;                                                        \
  }

SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetAdaptiveClockInfoStatus)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetAutoBoostedClocksEnabled)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetBoardPartNumber)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetBridgeChipInfo)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetDriverModel)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetDriverModel_v2)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetEncoderCapacity)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetEncoderSessions)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetEncoderStats)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetFBCSessions)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetFBCStats)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetFanSpeedRPM)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetGpuOperationMode)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetGspFirmwareMode)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetGspFirmwareVersion)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetInforomConfigurationChecksum)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetInforomImageVersion)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetInforomVersion)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetJpgUtilization)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetMarginTemperature)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetMinMaxFanSpeed)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetNumaNodeId)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetNvLinkCapability)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetNvLinkErrorCounter)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetNvLinkState)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetNvLinkVersion)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetOfaUtilization)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetPcieThroughput)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetTargetFanSpeed)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetThermalSettings)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceGetViolationStatus)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceSetAccountingMode)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceSetApplicationsClocks)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceSetEccMode)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceSetGpuLockedClocks)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceSetMemoryLockedClocks)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceSetPowerManagementLimit)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceResetApplicationsClocks)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceResetGpuLockedClocks)
SOFTGPU_NVML_UNSUPPORTED(nvmlDeviceResetMemoryLockedClocks)
