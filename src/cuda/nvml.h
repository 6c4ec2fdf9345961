// What NVML says about the GPUs of this machine: names, memory, utilisation, who uses them.
//
// Threads: thread-safe, as NVML is. Calls may block for milliseconds.
// Errors: kUnavailable with what to do where the cause is known (no driver, no permission, GPU lost), else kInternal.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

class Nvml {
 public:
  struct Device {
    std::string name;
    std::string uuid;  // "GPU-..."
    Bytes memory_total{0};
    Bytes memory_used{0};
    std::optional<double> utilisation;  // 0-1 over NVML's last sample window; empty in MIG mode
    std::optional<bool> mig_enabled;    // empty: the device cannot be partitioned
  };
  struct Process {
    int pid = 0;
    Bytes memory{0};  // on the device; 0 where NVML does not know
  };

  // library_dir: folder with libnvidia-ml.so.1; empty: where the system's loader looks. kUnavailable when there is no
  // library, or its driver does not answer.
  static Result<std::unique_ptr<Nvml>> load(const std::string& library_dir);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // In NVML's order: by PCI address. Empty: a driver without GPUs.
  Result<std::vector<Device>> devices() const;
  // Compute processes of the device at `index` in devices(), as seen in this process's pid namespace.
  Result<std::vector<Process>> processes(std::size_t index) const;

  Result<std::string> driver_version() const;
  const std::string& library_path() const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace fairlead
