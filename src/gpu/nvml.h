// What NVML says about the GPUs of this machine: names, memory, utilisation, who uses them.
//
// Threads: thread-safe, as NVML is. Calls may block for milliseconds.
// Errors: kUnavailable with what to do where the cause is known (no driver, no permission, GPU lost), else kInternal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/device.h"

struct nvmlDevice_st;

namespace fairlead {

class Nvml {
 public:
  struct Device {
    std::string name;
    std::string uuid;      // "GPU-...", of a slice "MIG-..."
    std::string gpu_uuid;  // of a slice: of the GPU it is cut from; else the same as `uuid`
    Bytes memory_total{0};
    Bytes memory_used{0};
    std::optional<double> utilisation;  // 0-1 over NVML's last sample window; empty in MIG mode and of slices
    std::optional<bool> mig_enabled;    // empty: the device cannot be partitioned
    std::optional<Slice> slice;         // of compute_devices(), where it is one
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

  struct Use {  // what changes of a device
    Bytes memory{0};
    std::optional<double> utilisation;
  };
  struct Xid {
    std::string gpu_uuid;
    unsigned number = 0;
  };

  // In NVML's order: by PCI address. Empty: a driver without GPUs.
  Result<std::vector<Device>> devices() const;
  // What a program can compute on: GPUs that are not in MIG mode, and in place of those that are, their slices.
  Result<std::vector<Device>> compute_devices() const;
  // Of a device that compute_devices() named. kUnavailable: it is lost, or the slice is gone.
  Result<Use> use(const std::string& uuid) const;
  // How much of the time since a moment each process computed, as NVML samples it. `until_us`: of the device's clock, the
  // moment to ask from next.
  struct ProcessUse {
    int pid = 0;
    double share = 0;  // 0 to 1, in whole percents
    std::uint64_t until_us = 0;
  };
  // Processes that did not compute are left out. Empty: the device does not say (MIG, old drivers).
  Result<std::optional<std::vector<ProcessUse>>> process_use(const std::string& uuid, std::uint64_t since_us) const;
  // Critical errors of the GPUs since the last call. Empty also where the driver reports none.
  std::vector<Xid> take_xids() const;
  // Compute processes of the device at `index` in devices(), as seen in this process's pid namespace.
  Result<std::vector<Process>> processes(std::size_t index) const;

  Result<std::string> driver_version() const;
  std::string cuda_version() const;  // the newest that the driver runs, "13.0"; "": it does not say
  const std::string& library_path() const;

 private:
  struct Library;
  Result<nvmlDevice_st*> handle_of(const std::string& uuid) const;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace fairlead
