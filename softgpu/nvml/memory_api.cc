// Memory: sizes, use, and the errors it has not had.
#include <algorithm>
#include <bit>
#include <set>

#include "softgpu/nvml/nvml_state.h"

using softgpu::check_device;
using softgpu::check_gpu;
using softgpu::kPageBytes;

namespace {

constexpr int kFirstWithRowRemapping = 8;  // compute capability; older GPUs retire pages

struct MemoryUse {
  unsigned long long total, used;
};

// Of a GPU in MIG mode: what its GPU instances use. Compute instances of one share its memory, which counts once.
MemoryUse memory_of(nvmlDevice_t device) {
  MemoryUse use = {device->view->total_bytes(), device->view->use().total * kPageBytes};
  use.used = std::min(use.used, use.total);  // pages that others claim in the table, rightly or not
  if (device->is_mig()) return use;
  std::set<unsigned> counted;
  for (const nvmlDevice_t mig : softgpu::mig_devices_of(device)) {
    if (counted.insert(mig->part().mig->gpu_instance).second) use.used += mig->view->use().total * kPageBytes;
  }
  use.used = std::min(use.used, use.total);
  return use;
}

bool is_counter(nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter) {
  return type <= NVML_MEMORY_ERROR_TYPE_UNCORRECTED && counter <= NVML_AGGREGATE_ECC;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const MemoryUse use = memory_of(device);
  *memory = {use.total, use.total - use.used, use.used};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const MemoryUse use = memory_of(device);
  *memory = {nvmlMemory_v2, use.total, 0, use.total - use.used, use.used};
  return NVML_SUCCESS;
}

// The aperture covers all memory; nothing is mapped through it.
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t* memory) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned long long total = std::bit_ceil(device->view->total_bytes());
  *memory = {total, total, 0};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned* bits) {
  SOFTGPU_NVML_TRY(check_gpu(device, bits));
  *bits = static_cast<unsigned>(device->profile().memory_bus_bits);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t* current, nvmlEnableState_t* pending) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  if (current == nullptr || pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *current = *pending = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  SOFTGPU_NVML_TRY(check_gpu(device, mode));
  *mode = NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                         unsigned long long* count) {
  SOFTGPU_NVML_TRY(check_gpu(device, count));
  if (!is_counter(type, counter)) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                            nvmlEccCounterType_t counter, nvmlEccErrorCounts_t* counts) {
  SOFTGPU_NVML_TRY(check_gpu(device, counts));
  if (!is_counter(type, counter)) return NVML_ERROR_INVALID_ARGUMENT;
  *counts = {};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                             nvmlEccCounterType_t counter, nvmlMemoryLocation_t location,
                                             unsigned long long* count) {
  if (location >= NVML_MEMORY_LOCATION_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return nvmlDeviceGetTotalEccErrors(device, type, counter, count);
}

nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t device, nvmlEccCounterType_t counter) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  return counter <= NVML_AGGREGATE_ECC ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned* count,
                                       unsigned long long*) {
  SOFTGPU_NVML_TRY(check_gpu(device, count));
  if (cause > NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR) return NVML_ERROR_INVALID_ARGUMENT;
  if (device->profile().compute_major >= kFirstWithRowRemapping) return NVML_ERROR_NOT_SUPPORTED;
  *count = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t* pending) {
  SOFTGPU_NVML_TRY(check_gpu(device, pending));
  if (device->profile().compute_major >= kFirstWithRowRemapping) return NVML_ERROR_NOT_SUPPORTED;
  *pending = NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned* correctable, unsigned* uncorrectable,
                                       unsigned* pending, unsigned* failure) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  for (unsigned* out : {correctable, uncorrectable, pending, failure}) {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  }
  if (device->profile().compute_major < kFirstWithRowRemapping) return NVML_ERROR_NOT_SUPPORTED;
  *correctable = *uncorrectable = *pending = *failure = 0;
  return NVML_SUCCESS;
}
