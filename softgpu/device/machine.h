// The machine: which devices exist on this computer, described by a file in the state folder that all processes share.
// The first process writes it from its environment; from then on the file decides and the environment is ignored.
#pragma once

#include <cstdint>
#include <string>

#include "softgpu/device/profile.h"
#include "softgpu/device/result.h"

namespace softgpu {

inline constexpr unsigned kMaxDevices = 16;

enum class Mode {
  kFast,   // a kernel takes what its execution takes
  kModel,  // a stream is held for the modelled duration
};

struct Machine {
  std::string home;  // the state folder
  std::uint64_t id = 0;
  unsigned device_count = 1;
  Mode mode = Mode::kFast;
  double time_scale = 1;           // multiplies modelled durations
  std::uint64_t memory_scale = 1;  // divides the memory of the profile
  Profile profile;

  std::uint64_t memory_bytes() const { return (profile.memory_mib << 20) / memory_scale; }
  std::uint64_t context_bytes() const { return (profile.context_mib << 20) / memory_scale; }
  std::string path(const std::string& name) const { return home + "/" + name; }
};

// The state folder: $SOFTGPU_HOME, else /dev/shm/softgpu-<uid>.
std::string machine_home();

// Opens the machine of machine_home(), creating it when absent from $SOFTGPU_PROFILE (v100-16), $SOFTGPU_DEVICES (1),
// $SOFTGPU_MODE (fast), $SOFTGPU_TIME_SCALE (1) and $SOFTGPU_MEMORY_SCALE (1). Error: what is wrong in the environment
// or in the file, and what to do.
Result<Machine> open_machine();

// The device's UUID: 16 bytes that differ between machines and between devices.
std::string device_uuid(const Machine& machine, unsigned device);
// The same as tools write it: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
std::string uuid_text(const Machine& machine, unsigned device);

// The device's PCI address, as CUDA writes it: 0000:01:00.0.
std::string pci_bus_id(unsigned device);

}  // namespace softgpu
