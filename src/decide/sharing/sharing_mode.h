// How kernels of several functions share a GPU, and what an instance is told of it.
//
//   none   processes take turns on the whole GPU
//   mps    every instance is a client of the GPU's MPS control daemon: kernels run side by side, each in its share of SMs
//   mig    only MIG slices are used; each is a GPU of its own, with memory and SMs that no other slice can touch
//
// A GPU that is cut into slices is used by slices in every mode, since its whole cannot be; `mig` refuses whole GPUs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/device.h"

namespace fairlead {

enum class SharingMode { kNone, kMps, kMig };
std::string_view sharing_mode_name(SharingMode mode);          // "none", "mps", "mig"
std::vector<std::string> sharing_mode_names();                 // for help texts
Result<SharingMode> sharing_mode_from(std::string_view name);  // kInvalidArgument lists the names

// Clients that one MPS daemon serves on a device: 48, and 60 from CUDA 13.1 on. `cuda_version` as the driver prints it,
// "13.0"; what is no version counts as old.
std::size_t mps_client_limit(std::string_view cuda_version);

// The part of one instance.
struct InstanceShare {
  std::string device_uuid;         // "GPU-..." or "MIG-..."
  std::string mps_pipe_directory;  // empty: no client of MPS
  Share share = {};                // its memory: at least 1 MiB
};

// The variables that give it to the process. They must be there before it starts: the share is fixed when the context is
// made. The device is named by its UUID, because numbers mean different devices to NVML, to CUDA and to an MPS daemon.
std::map<std::string, std::string> share_environment(const InstanceShare& share);

}  // namespace fairlead
