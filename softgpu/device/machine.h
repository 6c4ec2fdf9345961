// The machine: which devices exist on this computer, described by a file in the state folder that all processes share.
// The first process writes it from its environment; from then on the file decides and the environment is ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/device/profile.h"
#include "softgpu/device/result.h"
#include "softgpu/device/uuid.h"

namespace softgpu {

inline constexpr unsigned kMaxDevices = 16;

enum class Mode {
  kFast,    // a kernel takes what its execution takes
  kModel,   // a stream is held for the modelled duration
  kCharge,  // as kModel, and kernels marked as synthetic are not executed (time_model.h)
};
std::string_view mode_name(Mode mode);

struct Machine {
  std::string home;  // the state folder
  std::uint64_t id = 0;
  unsigned device_count = 1;
  Mode mode = Mode::kFast;
  double time_scale = 1;            // multiplies modelled durations
  std::uint64_t memory_scale = 1;   // divides the memory of the profiles
  std::uint64_t time_slice_us = 0;  // 0: each profile's own
  std::vector<Profile> profiles;    // of each device

  const Profile& profile(unsigned device) const { return profiles[device]; }
  std::uint64_t memory_bytes(unsigned device) const { return (profile(device).memory_mib << 20) / memory_scale; }
  std::uint64_t context_bytes(unsigned device) const { return (profile(device).context_mib << 20) / memory_scale; }
  bool paced() const { return mode != Mode::kFast; }
  std::string path(const std::string& name) const { return home + "/" + name; }
};

// The state folder: $SOFTGPU_HOME, else /dev/shm/softgpu-<uid>.
std::string machine_home();

// Opens the machine of machine_home(), creating it when absent from $SOFTGPU_PROFILE (v100-16; or a list, one for each
// device, of which the last is repeated), $SOFTGPU_DEVICES (as many as the list has), $SOFTGPU_MODE (fast),
// $SOFTGPU_TIME_SCALE (1), $SOFTGPU_MEMORY_SCALE (1) and $SOFTGPU_TIME_SLICE_US (0). Error: what is wrong in the
// environment or in the file, and what to do.
Result<Machine> open_machine();

// Opens the machine, lets `change` alter it and writes the description back, one caller at a time. Processes that have
// opened the machine keep what they read. Error: open_machine()'s, change's, the file system's.
Status change_machine(const std::function<Status(Machine&)>& change);

// The device's UUID: 16 bytes that differ between machines and between devices.
Uuid device_uuid(const Machine& machine, unsigned device);
// The same as tools write it: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
std::string uuid_text(const Machine& machine, unsigned device);

// The device's PCI address, as CUDA writes it: 0000:01:00.0.
std::string pci_bus_id(unsigned device);

}  // namespace softgpu
