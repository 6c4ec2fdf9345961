#include <unistd.h>

#include "cli/doctor.h"
#include "cli/format.h"
#include "cli/places.h"
#include "gpu/driver.h"
#include "gpu/nvml.h"
#include "model/software_gpu.h"
#include "runtime/mps_daemon.h"

namespace fairlead::cli {
namespace {

using Level = Check::Level;

// A real driver cannot work without its control device.
bool has_nvidia_device() {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

void check_driver(const std::string& library_dir, std::vector<Check>& checks) {
  Result<std::unique_ptr<CudaDriver>> driver = CudaDriver::load(library_dir);
  if (!driver) {
    Result<std::string> software = software_gpu_dir();
    checks.push_back({Level::kMissing, "CUDA driver", driver.error().message,
                      software ? "this program brings a software GPU: fairlead serve --softgpu" : ""});
    return;
  }
  const std::string version = (*driver)->version().value_or("?");
  checks.push_back({Level::kOk, "CUDA driver",
                    fmt::format("CUDA {}, {} GPU, {}", version, has_nvidia_device() ? "real" : "software",
                                (*driver)->library_path()),
                    ""});
  if (!has_nvidia_device()) {
    checks.push_back({Level::kWarn, "Isolation", std::string(kSoftwareGpuIsolatesNothing),
                      "let only functions that may see one another's data share this node"});
  }
  Result<std::vector<CudaDriver::Device>> devices = (*driver)->devices();
  if (!devices) {
    checks.push_back({Level::kMissing, "GPUs", devices.error().message, "see dmesg and nvidia-smi"});
    return;
  }
  if (devices->empty()) checks.push_back({Level::kMissing, "GPUs", "the driver has no device", "see nvidia-smi"});
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const CudaDriver::Device& device = (*devices)[i];
    checks.push_back({Level::kOk, fmt::format("GPU {}", i + 1),
                      fmt::format("{}, {}, compute capability {}.{}", device.name,
                                  format_bytes(static_cast<double>(device.memory.count())), device.compute_major,
                                  device.compute_minor),
                      ""});
  }
}

void check_slices(const Nvml& nvml, std::vector<Check>& checks) {
  const Result<std::vector<Nvml::Device>> devices = nvml.compute_devices();
  if (!devices) {
    checks.push_back({Level::kMissing, "MIG slices", devices.error().message, ""});
    return;
  }
  for (const Nvml::Device& device : *devices) {
    if (device.uuid == device.gpu_uuid) continue;
    checks.push_back({Level::kOk, "MIG slice",
                      fmt::format("{}, {}, {}", device.name,
                                  format_bytes(static_cast<double>(device.memory_total.count())), device.uuid),
                      ""});
  }
}

void check_nvml(const std::string& library_dir, std::vector<Check>& checks) {
  Result<std::unique_ptr<Nvml>> nvml = Nvml::load(library_dir);
  if (!nvml) {
    checks.push_back(
        {Level::kMissing, "NVML", nvml.error().message, "the node measures utilisation and memory with it"});
    return;
  }
  checks.push_back({Level::kOk, "NVML",
                    fmt::format("driver {}, {}", (*nvml)->driver_version().value_or("?"), (*nvml)->library_path()),
                    ""});
  Result<std::vector<Nvml::Device>> devices = (*nvml)->devices();
  if (!devices) {
    checks.push_back({Level::kMissing, "NVML devices", devices.error().message, ""});
    return;
  }
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const std::optional<bool> mig = (*devices)[i].mig_enabled;
    checks.push_back({Level::kOk, fmt::format("MIG on GPU {}", i + 1),
                      !mig   ? "not offered by this GPU"
                      : *mig ? "enabled"
                             : "off",
                      ""});
  }
  check_slices(**nvml, checks);
}

// A daemon that already runs at the usual place would take the programs for its own clients.
void check_mps(const std::string& library_dir, std::vector<Check>& checks) {
  const Result<std::string> control = find_mps_control(library_dir);
  if (!control) {
    checks.push_back({Level::kWarn, "MPS", control.error().message,
                      "without it functions take turns on the GPU's SMs (Debian: nvidia-cuda-mps)"});
    return;
  }
  checks.push_back({Level::kOk, "MPS", fmt::format("{}, for fairlead serve --sharing mps", *control), ""});
  if (access("/tmp/nvidia-mps/nvidia-cuda-mps-control.pid", F_OK) == 0) {
    checks.push_back({Level::kWarn, "MPS daemon of others", "one has its pipe in /tmp/nvidia-mps",
                      "it competes with the node's own for the GPU: echo quit | nvidia-cuda-mps-control"});
  }
}

}  // namespace

std::vector<Check> check_gpu(const std::string& library_dir) {
  std::vector<Check> checks;
  check_driver(library_dir, checks);
  check_nvml(library_dir, checks);
  check_mps(library_dir, checks);
  return checks;
}

}  // namespace fairlead::cli
