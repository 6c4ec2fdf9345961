// NVML and the CUDA driver of a machine with two GPUs, the second in MIG mode: constants, for the tests of the typed views.
#define CUDA_ABI_EXACT_NAMES
#include <cstdio>

#include "abi/cuda.h"
#include "abi/nvml.h"

#pragma GCC visibility push(default)

namespace {

unsigned index_of(nvmlDevice_t device) {
  return device == nullptr ? 0 : 1;
}
nvmlDevice_t second_device() {
  static int storage;
  return reinterpret_cast<nvmlDevice_t>(&storage);
}
constexpr unsigned kProcesses = 100;  // more than fit into a first guess

}  // namespace

nvmlReturn_t nvmlInit_v2() {
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlShutdown() {
  return NVML_SUCCESS;
}
const char* nvmlErrorString(nvmlReturn_t) {
  return "fake error";
}
nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::snprintf(version, length, "580.0");
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  if (index > 1) return NVML_ERROR_INVALID_ARGUMENT;
  *device = index == 0 ? nullptr : second_device();
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  std::snprintf(name, length, "Fake %u", index_of(device));
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  std::snprintf(uuid, length, "GPU-%u", index_of(device));
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t* memory) {
  *memory = {.total = 16ULL << 30, .free = 12ULL << 30, .used = 4ULL << 30};
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  if (index_of(device) == 1) return NVML_ERROR_NOT_SUPPORTED;
  *utilization = {.gpu = 75, .memory = 10};
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  *current = *pending = index_of(device);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned* count, nvmlProcessInfo_t* processes) {
  bool fits = *count >= kProcesses;
  *count = kProcesses;
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < kProcesses; ++i)
    processes[i] = {.pid = i + 1, .usedGpuMemory = i, .gpuInstanceId = 0, .computeInstanceId = 0};
  processes[0].usedGpuMemory = NVML_VALUE_NOT_AVAILABLE_ULL;
  return NVML_SUCCESS;
}

CUresult cuInit(unsigned) {
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult, const char** name) {
  *name = "FAKE_ERROR";
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = 12040;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(length), "Fake 0");
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = size_t{16} << 30;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return CUDA_SUCCESS;
}

#pragma GCC visibility pop
