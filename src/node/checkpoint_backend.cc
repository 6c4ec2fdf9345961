#include "node/checkpoint_backend.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace fairlead {

Result<std::unique_ptr<CheckpointBackend>> CheckpointBackend::load(const std::string& library_dir) {
  auto checkpoints = ProcessCheckpoints::load(library_dir);
  if (!checkpoints) {
    return fail(checkpoints.error().code, "--memory-backend is checkpoint: {}; vmm and uvm need less",
                checkpoints.error().message);
  }
  auto nvml = Nvml::load(library_dir);
  if (!nvml) return fail(nvml.error());
  return std::unique_ptr<CheckpointBackend>(new CheckpointBackend(*std::move(checkpoints), *std::move(nvml)));
}

CheckpointBackend::CheckpointBackend(std::shared_ptr<ProcessCheckpoints> checkpoints, std::unique_ptr<Nvml> nvml)
    : checkpoints_(std::move(checkpoints)), devices_(std::make_shared<Devices>()) {
  devices_->nvml = std::move(nvml);
  ProcessMover::Devices asked{
      .free = [devices = devices_](GpuId gpu) { return devices->free(gpu); },
      .used_by = [devices = devices_](GpuId gpu, pid_t pid) { return devices->used_by(gpu, pid); }};
  mover_ = std::make_shared<const ProcessMover>(checkpoints_, std::move(asked));
}

Status CheckpointBackend::start(const std::vector<GpuSample>& gpus) {
  if (Status started = checkpoints_->start(); !started) return started;
  const auto whole = devices_->nvml->devices();
  if (!whole) return fail(whole.error());
  // Only what has been listed so can be asked for its use.
  if (const auto listed = devices_->nvml->compute_devices(); !listed) return fail(listed.error());
  for (const GpuSample& gpu : gpus) {
    const auto found = std::find_if(whole->begin(), whole->end(),
                                    [&](const Nvml::Device& device) { return device.uuid == gpu.device.gpu_uuid; });
    devices_->gpus.push_back({gpu.device.uuid, gpu.device.memory, static_cast<std::size_t>(found - whole->begin())});
  }
  return {};
}

const CheckpointBackend::Gpu* CheckpointBackend::Devices::find(GpuId gpu) const {
  const std::uint64_t index = gpu.value() - 1;
  return index < gpus.size() ? &gpus[index] : nullptr;
}

std::optional<Bytes> CheckpointBackend::Devices::free(GpuId id) const {
  const Gpu* const gpu = find(id);
  if (gpu == nullptr) return std::nullopt;
  const auto use = nvml->use(gpu->uuid);
  if (!use) {
    spdlog::warn("GPU {}: what is free is not known, so a restore may strand its process: {}", id.value(),
                 use.error().message);
    return std::nullopt;
  }
  return std::max(Bytes(0), gpu->memory - use->memory);
}

Bytes CheckpointBackend::Devices::used_by(GpuId id, pid_t pid) const {
  const Gpu* const gpu = find(id);
  if (gpu == nullptr) return Bytes(0);
  const auto processes = nvml->processes(gpu->index);
  if (!processes) return Bytes(0);
  const auto found = std::find_if(processes->begin(), processes->end(),
                                  [pid](const Nvml::Process& process) { return process.pid == pid; });
  return found == processes->end() ? Bytes(0) : found->memory;
}

}  // namespace fairlead
