// The processes that have memory on a device.
#include <vector>

#include "softgpu/nvml/nvml_state.h"

using softgpu::check_device;

namespace {

constexpr unsigned kNoInstance = 0xFFFFFFFF;

struct Running {
  unsigned pid;
  unsigned long long bytes;
};

// Processes outside the caller's pid namespace have no pid here and are left out, as a container sees them on hardware.
std::vector<Running> running_on(nvmlDevice_t device) {
  const auto use = device->view->use();
  const softgpu::Clients& clients = softgpu::NvmlState::get()->clients();
  std::vector<Running> running;
  for (std::uint32_t slot = 0; slot < softgpu::kMaxClients; ++slot) {
    if (use.by_slot[slot] == 0) continue;
    const auto live = clients.live(slot);
    if (!live || live->pid <= 0) continue;
    running.push_back({static_cast<unsigned>(live->pid), use.by_slot[slot] * softgpu::kPageBytes});
  }
  return running;
}

void fill(nvmlProcessInfo_v1_t& info, const Running& process) {
  info = {process.pid, process.bytes};
}
void fill(nvmlProcessInfo_t& info, const Running& process) {
  info = {process.pid, process.bytes, kNoInstance, kNoInstance};
}

template <typename Info>
nvmlReturn_t list(nvmlDevice_t device, unsigned* count, Info* processes) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (count == nullptr || (*count != 0 && processes == nullptr)) return NVML_ERROR_INVALID_ARGUMENT;
  const std::vector<Running> running = running_on(device);
  const unsigned room = *count;
  *count = static_cast<unsigned>(running.size());
  if (room < running.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (std::size_t i = 0; i < running.size(); ++i) fill(processes[i], running[i]);
  return NVML_SUCCESS;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                  nvmlProcessInfo_v1_t* processes) {
  return list(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_t* processes) {
  return list(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_t* processes) {
  return list(device, count, processes);
}
