// A session: an instance of a kernel task, registered in a device server. What it binds, what its process is told, and what its calls
// need of the device.
//
// Example: a task of one constant of 4 MiB, an input and an output of 1 KiB each. Its registration carries the constant's number, and its
// bytes where the server has none; its calls need 2 KiB beside that constant, which counts once for all sessions that have it.
//
// Threads: none of its own.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/session_memory.h"
#include "runtime/device_servers/bound_object.h"
#include "runtime/device_servers/device_call.h"
#include "wire/device_frames.h"

namespace fairlead {

struct SessionSpec {
  InstanceId instance;
  GpuId gpu;
  std::string tenant = "default";
  std::shared_ptr<const KernelTaskSpec> task;
  std::map<std::string, std::string> environment;  // of the server, when this is its first session
  bool whole_kernels = false;                      // they are not cut, whatever a device's quotas are
  int most_width_percent = 100;                    // its kernels are not to be on more of the SMs at once
};

struct SessionUse {
  Bytes device{0};  // of the session's objects and temporaries, at its last call
  Duration gpu_time{0};
};

struct DeviceSession {
  InstanceId instance;
  SessionSpec spec;
  DeviceServer* server = nullptr;
  bool announced = false;   // `next` was called
  Duration kernel_init{0};  // of the last registration; the next answer's
  std::vector<BoundPtr> constants;
  std::size_t opening = 0;
  std::optional<InvocationId> call;
  SessionUse use;
};

// Its constants, each to be opened.
std::vector<BoundPtr> bind_constants(const SessionSpec& spec);

// Its registration. The memory of its constants is in the frame from then on. kInternal, naming the file: a module cannot be opened.
Result<FrameWithMemory<wire::RegisterSession>> registration_of(DeviceSession& session);

// What its calls need of the device, by the server's own numbers of objects, so that equal constants count once.
SessionMemory memory_of(const DeviceSession& session);

}  // namespace fairlead
