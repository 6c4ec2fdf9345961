// Topology: all GPUs hang on one CPU socket; there is no NVLink.
#include <sched.h>

#include <algorithm>

#include "softgpu/nvml/nvml_state.h"

using softgpu::check_gpu;
using softgpu::NvmlState;

namespace {

constexpr unsigned kBitsPerWord = 8 * sizeof(unsigned long);

// Arrays of topology queries are asked for twice: without an array for the count, then with it.
nvmlReturn_t write_devices(const std::vector<nvmlDevice_t>& found, unsigned* count, nvmlDevice_t* devices) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (devices == nullptr) {
    *count = static_cast<unsigned>(found.size());
    return NVML_SUCCESS;
  }
  return softgpu::write_list(found, count, devices);
}

bool has_mig(nvmlDevice_t gpu) {
  std::optional<softgpu::GpuSettings> settings;
  return softgpu::settings_of(gpu, settings) == NVML_SUCCESS && settings->mig.enabled();
}

}  // namespace

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t* level) {
  SOFTGPU_NVML_TRY(check_gpu(a, level));
  SOFTGPU_NVML_TRY(check_gpu(b));
  *level = a == b ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_NODE;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned* count,
                                              nvmlDevice_t* devices) {
  SOFTGPU_NVML_TRY(check_gpu(device, count));
  std::vector<nvmlDevice_t> found;
  for (const auto& gpu : NvmlState::get()->gpus()) {
    if (gpu.get() != device && level == NVML_TOPOLOGY_NODE) found.push_back(gpu.get());
  }
  return write_devices(found, count, devices);
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned, unsigned* count, nvmlDevice_t* devices) {
  if (NvmlState::get() == nullptr) return NVML_ERROR_UNINITIALIZED;
  std::vector<nvmlDevice_t> found;
  for (const auto& gpu : NvmlState::get()->gpus()) found.push_back(gpu.get());
  return write_devices(found, count, devices);
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index,
                                    nvmlGpuP2PStatus_t* status) {
  SOFTGPU_NVML_TRY(check_gpu(a, status));
  SOFTGPU_NVML_TRY(check_gpu(b));
  if (index > NVML_P2P_CAPS_INDEX_PCI) return NVML_ERROR_INVALID_ARGUMENT;
  const bool possible = index != NVML_P2P_CAPS_INDEX_NVLINK && !has_mig(a) && !has_mig(b);
  *status = possible ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int* same) {
  SOFTGPU_NVML_TRY(check_gpu(a, same));
  SOFTGPU_NVML_TRY(check_gpu(b));
  *same = a == b ? 1 : 0;
  return NVML_SUCCESS;
}

// All CPUs that this process may use.
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned words, unsigned long* set) {
  SOFTGPU_NVML_TRY(check_gpu(device, set));
  if (words == 0) return NVML_ERROR_INVALID_ARGUMENT;
  cpu_set_t cpus;
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0) return NVML_ERROR_UNKNOWN;
  std::fill(set, set + words, 0UL);
  for (unsigned cpu = 0; cpu < std::min<unsigned>(words * kBitsPerWord, CPU_SETSIZE); ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) set[cpu / kBitsPerWord] |= 1UL << cpu % kBitsPerWord;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned words, unsigned long* set,
                                                 unsigned scope) {
  if (scope > 1) return NVML_ERROR_INVALID_ARGUMENT;
  return nvmlDeviceGetCpuAffinity(device, words, set);
}

// S-class units; the modelled machine has none.
nvmlReturn_t nvmlUnitGetCount(unsigned* count) {
  if (NvmlState::get() == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}
