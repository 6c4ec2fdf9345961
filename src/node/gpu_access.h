// How the node and its instances reach the GPUs. The same for every driver: a folder of libraries when they are not the
// system's, the machine's device files, folders that the driver's processes share, and the variables that configure it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/cdi.h"
#include "runtime/instance_host.h"

namespace fairlead {

// A CUDA driver.
struct GpuLibrary {
  std::string dir;                       // with libcuda.so.1 and libnvidia-ml.so.1; empty: the system's own
  std::vector<std::string> shared_dirs;  // that its processes share; writable in every sandbox, at the same path
};
GpuLibrary system_gpu_library(std::string dir);

// The software GPU in `dir`. Its shared folder is $SOFTGPU_HOME, or the library's default; it is created here, so that
// all instances find the same device.
Result<GpuLibrary> software_gpu_library(std::string dir);

// What a sandbox gets.
struct GpuAccess {
  std::vector<InstanceSpec::Bind> binds;
  std::map<std::string, std::string> environment;
  std::optional<CdiSpec> cdi;  // what a container gets in place of `binds`, for each GPU; not for the software GPU
};

// What an image's instance on the GPU of this index gets: its CDI device alone, which it then sees as its first, else what
// every sandbox gets.
GpuAccess container_gpu_access(const GpuAccess& access, std::uint64_t index);

// Variables of this process whose names start with a driver's prefix (CUDA_, SOFTGPU_) are passed on.
GpuAccess gpu_access(const GpuLibrary& library);

}  // namespace fairlead
