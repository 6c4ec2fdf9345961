// The processes with contexts on a device.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "softgpu/device/process_account.h"
#include "softgpu/mutex.h"
#include "softgpu/nvml/nvml_state.h"

using softgpu::check_device;
using softgpu::check_gpu;
using softgpu::write_list;

namespace {

constexpr unsigned kNoInstance = 0xFFFFFFFF;
constexpr unsigned kAccountingBuffer = 4000;

struct Running {
  softgpu::Owner owner;
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};

// Processes outside the caller's pid namespace have no pid here and are left out, as a container sees them on hardware.
void append_running(nvmlDevice_t device, std::vector<Running>& running) {
  const auto use = device->view->use();
  const softgpu::Clients& clients = softgpu::NvmlState::get()->clients();
  const auto mig = device->part().mig;
  for (const softgpu::Owner owner : device->view->users().list()) {
    const auto live = clients.live(owner.slot);
    if (!live || live->pid <= 0) continue;
    running.push_back({owner, static_cast<unsigned>(live->pid), use.by_slot[owner.slot] * softgpu::kPageBytes,
                       mig ? mig->gpu_instance : kNoInstance, mig ? mig->compute_instance : kNoInstance});
  }
}

// Of a GPU: also those of its MIG devices.
std::vector<Running> running_on(nvmlDevice_t device) {
  std::vector<Running> running;
  append_running(device, running);
  if (device->is_mig()) return running;
  for (const nvmlDevice_t mig : softgpu::mig_devices_of(device)) append_running(mig, running);
  return running;
}

void fill(nvmlProcessInfo_v1_t& info, const Running& process) {
  info = {process.pid, process.bytes};
}
void fill(nvmlProcessInfo_t& info, const Running& process) {
  info = {process.pid, process.bytes, process.gpu_instance, process.compute_instance};
}
void fill(nvmlProcessDetail_v1_t& info, const Running& process) {
  info = {process.pid, process.bytes, process.gpu_instance, process.compute_instance, 0};
}

// How busy processes were since a moment that an earlier answer named.
class UseSince {
 public:
  UseSince(nvmlDevice_t device, const std::vector<Running>& running, std::uint64_t now_ns,
           unsigned long long since_us) {
    now_.timestamp_us = softgpu::timestamp_us(now_ns);
    for (const Running& process : running) {
      now_.busy_ns[process.owner.pack()] = softgpu::computed_ns(device->view->control(), process.owner, now_ns);
    }
    softgpu::UseHistory& history = *device->history;
    const softgpu::LockGuard guard(history.mutex);
    for (const softgpu::UseSnapshot& snapshot : history.snapshots) {
      const unsigned long long apart =
          std::max(snapshot.timestamp_us, since_us) - std::min(snapshot.timestamp_us, since_us);
      if (apart <= kSameMomentUs && snapshot.timestamp_us < now_.timestamp_us) before_ = snapshot;
    }
    history.snapshots.push_back(now_);
    if (history.snapshots.size() > kSnapshots) history.snapshots.pop_front();
  }

  // 0 to 1; empty: nobody asked then. A process that came meanwhile had computed nothing then.
  std::optional<double> since(softgpu::Owner owner) const {
    if (!before_) return std::nullopt;
    const auto found = before_->busy_ns.find(owner.pack());
    const std::uint64_t before = found == before_->busy_ns.end() ? 0 : found->second;
    const std::uint64_t busy = now_.busy_ns.at(owner.pack());
    const auto window_ns = static_cast<double>(now_.timestamp_us - before_->timestamp_us) * 1e3;
    return std::min(1.0, static_cast<double>(busy - std::min(busy, before)) / window_ns);
  }

 private:
  // A caller that got no sample names its own time of asking.
  static constexpr unsigned long long kSameMomentUs = 5000;
  static constexpr std::size_t kSnapshots = 16;

  softgpu::UseSnapshot now_;
  std::optional<softgpu::UseSnapshot> before_;
};

template <typename Info>
nvmlReturn_t list(nvmlDevice_t device, unsigned* count, Info* processes) {
  SOFTGPU_NVML_TRY(check_device(device));
  std::vector<Info> infos;
  for (const Running& process : running_on(device)) fill(infos.emplace_back(), process);
  return write_list(infos, count, processes);
}

template <typename Info>
nvmlReturn_t list_none(nvmlDevice_t device, unsigned* count, Info* processes) {
  SOFTGPU_NVML_TRY(check_device(device));
  return write_list(std::vector<Info>(), count, processes);
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

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                   nvmlProcessInfo_v1_t* processes) {
  return list_none(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                      nvmlProcessInfo_t* processes) {
  return list_none(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                      nvmlProcessInfo_t* processes) {
  return list_none(device, count, processes);
}

// MPS clients are listed with the other processes: each has its own memory and there is no server process.
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_v1_t* processes) {
  return list_none(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                        nvmlProcessInfo_t* processes) {
  return list_none(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                        nvmlProcessInfo_t* processes) {
  return list_none(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_v1_t* list) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (list == nullptr || list->mode > 2) return NVML_ERROR_INVALID_ARGUMENT;
  if (list->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  std::vector<nvmlProcessDetail_v1_t> details;
  if (list->mode == 0) {
    for (const Running& process : running_on(device)) fill(details.emplace_back(), process);
  }
  return write_list(details, &list->numProcArrayEntries, list->procArray);
}

// The share of the time since `since` in which each process computed, where an earlier answer ended then, else of the last
// half second; those that did not compute are left out. NOT_FOUND when no process computed.
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t* samples,
                                             unsigned* count, unsigned long long since) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  std::optional<softgpu::GpuSettings> settings;
  SOFTGPU_NVML_TRY(softgpu::settings_of(device, settings));
  if (settings->mig.enabled()) return NVML_ERROR_NOT_SUPPORTED;
  const std::uint64_t now = softgpu::monotonic_ns();
  const unsigned long long timestamp = softgpu::timestamp_us(now);
  std::vector<nvmlProcessUtilizationSample_t> made;
  const std::vector<Running> running = running_on(device);
  const UseSince use(device, running, now, since);
  for (const Running& process : running) {
    const double busy = use.since(process.owner).value_or(device->view->users().busy(process.owner, now));
    if (busy == 0 || timestamp <= since) continue;
    made.push_back({process.pid, timestamp, static_cast<unsigned>(busy * 100 + 0.5), 0, 0, 0});
  }
  if (made.empty() && count != nullptr) {
    *count = 0;
    return NVML_ERROR_NOT_FOUND;
  }
  return write_list(made, count, samples);
}

// Accounting is off and stays off.
nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  SOFTGPU_NVML_TRY(check_gpu(device, mode));
  *mode = NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned* count) {
  SOFTGPU_NVML_TRY(check_gpu(device, count));
  *count = kAccountingBuffer;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned* count, unsigned* pids) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  return write_list(std::vector<unsigned>(), count, pids);
}
