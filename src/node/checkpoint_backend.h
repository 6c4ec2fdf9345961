// What `--memory-backend checkpoint` needs of this machine's drivers: checkpoints of processes, and NVML to know what a
// process uses and whether there is room for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/gpu_monitor.h"
#include "runtime/shim/process_mover.h"

namespace fairlead {

class CheckpointBackend {
 public:
  // Starts no thread. kUnavailable: the driver has no checkpoints, or there is none; with what to do.
  static Result<std::unique_ptr<CheckpointBackend>> load(const std::string& library_dir);

  // REQUIRES: called once, before the first move. May start threads of the driver.
  Status start(const std::vector<GpuSample>& gpus);  // of one that appears later nothing moves

  std::shared_ptr<const ProcessMover> mover() const { return mover_; }

 private:
  struct Gpu {
    std::string uuid;
    Bytes memory{0};
    std::size_t index = 0;  // of its whole GPU, as NVML lists processes
  };
  struct Devices {  // shared with the mover, which may outlive the backend
    std::unique_ptr<Nvml> nvml;
    std::vector<Gpu> gpus;  // by GpuId
    const Gpu* find(GpuId gpu) const;
    std::optional<Bytes> free(GpuId gpu) const;
    Bytes used_by(GpuId gpu, pid_t pid) const;
  };
  CheckpointBackend(std::shared_ptr<ProcessCheckpoints> checkpoints, std::unique_ptr<Nvml> nvml);

  std::shared_ptr<ProcessCheckpoints> checkpoints_;
  std::shared_ptr<Devices> devices_;
  std::shared_ptr<const ProcessMover> mover_;
};

}  // namespace fairlead
