/* The NVML API as this project uses it: our own declarations of a public binary interface, with every function under
 * the exact symbol the library exports. Building needs no NVIDIA toolkit. C and C++. Units are in the field names. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* One line per result code: X(name, value). */
#define NVML_ABI_RESULTS(X)                   \
  X(NVML_SUCCESS, 0)                          \
  X(NVML_ERROR_UNINITIALIZED, 1)              \
  X(NVML_ERROR_INVALID_ARGUMENT, 2)           \
  X(NVML_ERROR_NOT_SUPPORTED, 3)              \
  X(NVML_ERROR_NO_PERMISSION, 4)              \
  X(NVML_ERROR_ALREADY_INITIALIZED, 5)        \
  X(NVML_ERROR_NOT_FOUND, 6)                  \
  X(NVML_ERROR_INSUFFICIENT_SIZE, 7)          \
  X(NVML_ERROR_INSUFFICIENT_POWER, 8)         \
  X(NVML_ERROR_DRIVER_NOT_LOADED, 9)          \
  X(NVML_ERROR_TIMEOUT, 10)                   \
  X(NVML_ERROR_IRQ_ISSUE, 11)                 \
  X(NVML_ERROR_LIBRARY_NOT_FOUND, 12)         \
  X(NVML_ERROR_FUNCTION_NOT_FOUND, 13)        \
  X(NVML_ERROR_CORRUPTED_INFOROM, 14)         \
  X(NVML_ERROR_GPU_IS_LOST, 15)               \
  X(NVML_ERROR_RESET_REQUIRED, 16)            \
  X(NVML_ERROR_OPERATING_SYSTEM, 17)          \
  X(NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18)   \
  X(NVML_ERROR_IN_USE, 19)                    \
  X(NVML_ERROR_MEMORY, 20)                    \
  X(NVML_ERROR_NO_DATA, 21)                   \
  X(NVML_ERROR_INSUFFICIENT_RESOURCES, 23)    \
  X(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25) \
  X(NVML_ERROR_UNKNOWN, 999)

typedef enum nvmlReturn_t {
#define NVML_ABI_RESULT_VALUE(name, value) name = value,
  NVML_ABI_RESULTS(NVML_ABI_RESULT_VALUE)
#undef NVML_ABI_RESULT_VALUE
} nvmlReturn_t;

typedef struct nvmlDevice_st* nvmlDevice_t;

#define NVML_DEVICE_NAME_V2_BUFFER_SIZE 96
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE 96
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80
#define NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE 80
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE 32
#define NVML_VALUE_NOT_AVAILABLE_ULL 0xFFFFFFFFFFFFFFFFULL

/* A versioned structure carries its size and version, so that a library can refuse what it does not know. */
#define NVML_STRUCT_VERSION(type, version) ((unsigned int)(sizeof(type) | ((version) << 24U)))

typedef struct nvmlMemory_t {
  unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct nvmlMemory_v2_t {
  unsigned int version;
  unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
#define nvmlMemory_v2 NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)

/* Percent of the last sample window. */
typedef struct nvmlUtilization_t {
  unsigned int gpu, memory;
} nvmlUtilization_t;

typedef struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned int domain, bus, device;
  unsigned int pciDeviceId, pciSubSystemId;
  char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfo_t;

typedef struct nvmlProcessInfo_v1_t {
  unsigned int pid;
  unsigned long long usedGpuMemory; /* bytes */
} nvmlProcessInfo_v1_t;

typedef struct nvmlProcessInfo_t {
  unsigned int pid;
  unsigned long long usedGpuMemory; /* bytes */
  unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

typedef enum nvmlClockType_t {
  NVML_CLOCK_GRAPHICS = 0,
  NVML_CLOCK_SM = 1,
  NVML_CLOCK_MEM = 2,
  NVML_CLOCK_VIDEO = 3
} nvmlClockType_t;

typedef enum nvmlTemperatureSensors_t { NVML_TEMPERATURE_GPU = 0 } nvmlTemperatureSensors_t;

typedef enum nvmlComputeMode_t {
  NVML_COMPUTEMODE_DEFAULT = 0,
  NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
  NVML_COMPUTEMODE_PROHIBITED = 2,
  NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3
} nvmlComputeMode_t;

typedef enum nvmlEnableState_t { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 } nvmlEnableState_t;

#define NVML_DEVICE_MIG_DISABLE 0
#define NVML_DEVICE_MIG_ENABLE 1

/* ---- Library ---- */
nvmlReturn_t nvmlInit(void);
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t nvmlShutdown(void);
const char* nvmlErrorString(nvmlReturn_t result);
nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length);
nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned int length);
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version);
nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length);

/* ---- Devices ---- */
nvmlReturn_t nvmlDeviceGetCount(unsigned int* count);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count);
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length);
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* pci);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci);
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor);
nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int* cores);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                  nvmlProcessInfo_v1_t* processes);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_t* processes);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_t* processes);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* milliwatts);
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* milliwatts);
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* millijoules);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int* celsius);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* megahertz);
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* megahertz);
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t* mode);
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* mode);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current, unsigned int* pending);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count);

#ifdef __cplusplus
}
#endif
