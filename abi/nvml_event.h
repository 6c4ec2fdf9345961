/* NVML's events: what a monitor waits for. */
#pragma once

#include "abi/nvml_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nvmlEventSet_st* nvmlEventSet_t;

#define nvmlEventTypeNone 0x0ULL
#define nvmlEventTypeSingleBitEccError 0x1ULL
#define nvmlEventTypeDoubleBitEccError 0x2ULL
#define nvmlEventTypePState 0x4ULL
#define nvmlEventTypeXidCriticalError 0x8ULL
#define nvmlEventTypeClock 0x10ULL
#define nvmlEventMigConfigChange 0x100ULL

typedef struct nvmlEventData_v1_t {
  nvmlDevice_t device;
  unsigned long long eventType;
  unsigned long long eventData; /* of an Xid event: its number */
  unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set);
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set);
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* types);
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set);
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t* event, unsigned int timeout_ms);
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* event, unsigned int timeout_ms);

#ifdef __cplusplus
}
#endif
