// MPS: whether a control daemon serves this process, and what a client process gets of a device. Clients compute side by
// side, so all they need of a daemon is its settings. These are a file of
//
//   the pipe directory   while `nvidia-cuda-mps-control -d` (softgpu/mps) runs there: one daemon for each directory
//   the state folder     between `softgpu mps start` and `stop`: one for the machine, without a process
//
// The environment of a client is NVIDIA's:
//
//   CUDA_MPS_PIPE_DIRECTORY            a client connects only if it names the daemon's directory (/tmp/nvidia-mps)
//   CUDA_MPS_ACTIVE_THREAD_PERCENTAGE  its share of the SMs, rounded up; at most the daemon's default
//   CUDA_MPS_PINNED_DEVICE_MEM_LIMIT   "0=4G,1=512M": device memory by the client's device number
//   CUDA_MPS_CLIENT_PRIORITY           0 normal, 1 below normal
//
// Example: 30 % of a V100's 80 SMs is 24 SMs, and 33 % is 27.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "softgpu/device/machine.h"
#include "softgpu/device/result.h"
#include "softgpu/device/time/activity.h"

namespace softgpu {

// The most client contexts of a device that MPS of compute capability 7.0 and later serves.
inline constexpr unsigned kMpsContexts = 48;

struct Mps {
  std::string pipe_directory = "/tmp/nvidia-mps";
  unsigned default_percentage = 100;
  std::map<unsigned, std::uint64_t> memory_limits;  // bytes by device; what a client does not limit itself
  unsigned max_contexts = kMpsContexts;
  std::set<unsigned> devices;  // that it serves; empty: all
  // Whether a fatal fault of one client reaches all clients of the device, as on hardware, or only that client.
  bool faults_shared = true;
};

// The daemon, if it runs. Error: the file is damaged; says what to do.
Result<std::optional<Mps>> read_mps(const Machine& machine);
Status start_mps(const Machine& machine, const Mps& mps);
Status stop_mps(const Machine& machine);

// Files of a pipe directory, with NVIDIA's names but for the first.
inline constexpr char kMpsSettingsFile[] = "softgpu-mps";  // of the daemon that serves the directory
inline constexpr char kMpsLockFile[] = "control_lock";     // locked (flock) while that daemon lives

// The daemon that serves a pipe directory; none when it has ended, however. Error: as read_mps.
Result<std::optional<Mps>> read_mps_of(const std::string& pipe_directory);
std::string mps_text(const Mps& mps);  // the content of its settings file

// The part of the environment that matters to a client; empty strings where a variable is not set.
struct MpsEnvironment {
  std::string pipe_directory, percentage, memory_limits, priority;
};
MpsEnvironment mps_environment();

// The daemon that this environment connects to: the one in its pipe directory, else the machine's.
Result<std::optional<Mps>> find_mps(const Machine& machine, const MpsEnvironment& environment);

// What a process with this environment gets of a device that is its number `ordinal`. A process that takes turns gets
// all SMs. Error: the variable that is wrong, its value and what is expected.
Result<ClientShare> client_share(const Machine& machine, const std::optional<Mps>& mps,
                                 const MpsEnvironment& environment, unsigned device, unsigned ordinal);

// "0=4G,1=512M" as bytes by device; K, M and G are powers of 1024. Error: the entry that is wrong.
Result<std::map<unsigned, std::uint64_t>> parse_memory_limits(const std::string& text);

}  // namespace softgpu
