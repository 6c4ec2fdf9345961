/* The types and constants of the NVML API: our own declarations of a public binary interface. Units are in the field
 * names or beside them. */
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
  X(NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, 22)    \
  X(NVML_ERROR_INSUFFICIENT_RESOURCES, 23)    \
  X(NVML_ERROR_FREQ_NOT_SUPPORTED, 24)        \
  X(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25) \
  X(NVML_ERROR_DEPRECATED, 26)                \
  X(NVML_ERROR_NOT_READY, 27)                 \
  X(NVML_ERROR_GPU_NOT_FOUND, 28)             \
  X(NVML_ERROR_INVALID_STATE, 29)             \
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
#define NVML_DEVICE_SERIAL_BUFFER_SIZE 30
#define NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE 32
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE 16
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

/* PCI of the second version of the query: the bus id is the short one, the rest is unused. */
typedef struct nvmlPciInfo_v2_t {
  char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
  unsigned int domain, bus, device;
  unsigned int pciDeviceId, pciSubSystemId;
  unsigned int reserved[4];
} nvmlPciInfo_v2_t;

typedef struct nvmlPciInfoExt_v1_t {
  unsigned int version;
  unsigned int domain, bus, device;
  unsigned int pciDeviceId, pciSubSystemId;
  unsigned int baseClass, subClass;
  char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfoExt_v1_t;
#define nvmlPciInfoExt_v1 NVML_STRUCT_VERSION(nvmlPciInfoExt_v1_t, 1)

typedef struct nvmlBAR1Memory_t {
  unsigned long long bar1Total, bar1Free, bar1Used;
} nvmlBAR1Memory_t;

typedef enum nvmlBrandType_t { NVML_BRAND_TESLA = 2, NVML_BRAND_NVIDIA = 14 } nvmlBrandType_t;

typedef unsigned int nvmlDeviceArchitecture_t;
#define NVML_DEVICE_ARCH_VOLTA 5
#define NVML_DEVICE_ARCH_TURING 6
#define NVML_DEVICE_ARCH_AMPERE 7
#define NVML_DEVICE_ARCH_ADA 8
#define NVML_DEVICE_ARCH_HOPPER 9
#define NVML_DEVICE_ARCH_BLACKWELL 10
#define NVML_DEVICE_ARCH_UNKNOWN 0xFFFFFFFFU

typedef unsigned int nvmlBusType_t;
#define NVML_BUS_TYPE_PCIE 2
typedef unsigned int nvmlPowerSource_t;
#define NVML_POWER_SOURCE_AC 0

typedef enum nvmlTemperatureThresholds_t {
  NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0,
  NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
  NVML_TEMPERATURE_THRESHOLD_MEM_MAX = 2,
  NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3,
  NVML_TEMPERATURE_THRESHOLD_COUNT = 8
} nvmlTemperatureThresholds_t;

typedef struct nvmlTemperature_v1_t {
  unsigned int version;
  nvmlTemperatureSensors_t sensorType;
  int temperature;
} nvmlTemperature_v1_t;
#define nvmlTemperature_v1 NVML_STRUCT_VERSION(nvmlTemperature_v1_t, 1)

typedef enum nvmlClockId_t {
  NVML_CLOCK_ID_CURRENT = 0,
  NVML_CLOCK_ID_APP_CLOCK_TARGET = 1,
  NVML_CLOCK_ID_APP_CLOCK_DEFAULT = 2,
  NVML_CLOCK_ID_CUSTOMER_BOOST_MAX = 3
} nvmlClockId_t;

typedef enum nvmlPstates_t { NVML_PSTATE_0 = 0, NVML_PSTATE_UNKNOWN = 32 } nvmlPstates_t;

#define nvmlClocksEventReasonGpuIdle 0x1ULL
#define nvmlClocksEventReasonNone 0x0ULL

typedef enum nvmlMemoryErrorType_t {
  NVML_MEMORY_ERROR_TYPE_CORRECTED = 0,
  NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
} nvmlMemoryErrorType_t;

typedef enum nvmlEccCounterType_t { NVML_VOLATILE_ECC = 0, NVML_AGGREGATE_ECC = 1 } nvmlEccCounterType_t;

typedef enum nvmlMemoryLocation_t {
  NVML_MEMORY_LOCATION_L1_CACHE = 0,
  NVML_MEMORY_LOCATION_COUNT = 8
} nvmlMemoryLocation_t;

typedef struct nvmlEccErrorCounts_t {
  unsigned long long l1Cache, l2Cache, deviceMemory, registerFile;
} nvmlEccErrorCounts_t;

typedef enum nvmlPageRetirementCause_t {
  NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS = 0,
  NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR = 1
} nvmlPageRetirementCause_t;

typedef enum nvmlGpuTopologyLevel_t {
  NVML_TOPOLOGY_INTERNAL = 0,
  NVML_TOPOLOGY_NODE = 40,
  NVML_TOPOLOGY_SYSTEM = 50
} nvmlGpuTopologyLevel_t;

typedef enum nvmlGpuP2PStatus_t { NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_NOT_SUPPORTED = 5 } nvmlGpuP2PStatus_t;

typedef enum nvmlGpuP2PCapsIndex_t {
  NVML_P2P_CAPS_INDEX_READ = 0,
  NVML_P2P_CAPS_INDEX_WRITE = 1,
  NVML_P2P_CAPS_INDEX_NVLINK = 2,
  NVML_P2P_CAPS_INDEX_ATOMICS = 3,
  NVML_P2P_CAPS_INDEX_PCI = 4
} nvmlGpuP2PCapsIndex_t;

typedef enum nvmlGpuVirtualizationMode_t { NVML_GPU_VIRTUALIZATION_MODE_NONE = 0 } nvmlGpuVirtualizationMode_t;

/* ---- Samples and fields ---- */
typedef union nvmlValue_t {
  double dVal;
  unsigned int uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  signed long long sllVal;
  int siVal;
  unsigned short usVal;
} nvmlValue_t;

typedef enum nvmlValueType_t {
  NVML_VALUE_TYPE_DOUBLE = 0,
  NVML_VALUE_TYPE_UNSIGNED_INT = 1,
  NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
  NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3
} nvmlValueType_t;

typedef enum nvmlSamplingType_t {
  NVML_TOTAL_POWER_SAMPLES = 0,
  NVML_GPU_UTILIZATION_SAMPLES = 1,
  NVML_MEMORY_UTILIZATION_SAMPLES = 2,
  NVML_PROCESSOR_CLK_SAMPLES = 5,
  NVML_MEMORY_CLK_SAMPLES = 6
} nvmlSamplingType_t;

typedef struct nvmlSample_t {
  unsigned long long timeStamp; /* microseconds since 1970 */
  nvmlValue_t sampleValue;
} nvmlSample_t;

typedef struct nvmlFieldValue_t {
  unsigned int fieldId, scopeId;
  long long timestamp, latencyUsec;
  nvmlValueType_t valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
} nvmlFieldValue_t;

#define NVML_FI_DEV_ECC_CURRENT 1
#define NVML_FI_DEV_ECC_PENDING 2
#define NVML_FI_DEV_ECC_SBE_VOL_TOTAL 3
#define NVML_FI_DEV_ECC_DBE_AGG_CBU 28
#define NVML_FI_DEV_RETIRED_SBE 29
#define NVML_FI_DEV_RETIRED_PENDING 31
#define NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION 83
#define NVML_FI_DEV_NVLINK_LINK_COUNT 91
#define NVML_FI_DEV_PCIE_REPLAY_COUNTER 94
#define NVML_FI_DEV_REMAPPED_COR 142
#define NVML_FI_DEV_REMAPPED_FAILURE 145
#define NVML_FI_DEV_POWER_AVERAGE 185
#define NVML_FI_DEV_POWER_INSTANT 186
#define NVML_FI_DEV_POWER_MIN_LIMIT 187
#define NVML_FI_DEV_POWER_MAX_LIMIT 188
#define NVML_FI_DEV_POWER_DEFAULT_LIMIT 189
#define NVML_FI_DEV_POWER_CURRENT_LIMIT 190
#define NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE 199

/* ---- Processes ---- */
typedef struct nvmlProcessUtilizationSample_t {
  unsigned int pid;
  unsigned long long timeStamp; /* microseconds since 1970 */
  unsigned int smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct nvmlProcessDetail_v1_t {
  unsigned int pid;
  unsigned long long usedGpuMemory; /* bytes */
  unsigned int gpuInstanceId, computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct nvmlProcessDetailList_v1_t {
  unsigned int version;
  unsigned int mode; /* 0 compute, 1 graphics, 2 MPS */
  unsigned int numProcArrayEntries;
  nvmlProcessDetail_v1_t* procArray;
} nvmlProcessDetailList_v1_t;
#define nvmlProcessDetailList_v1 NVML_STRUCT_VERSION(nvmlProcessDetailList_v1_t, 1)

#ifdef __cplusplus
}
#endif
