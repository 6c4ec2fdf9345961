// From a registration whose modules may be loaded to a session that calls can run in, and what is made ready for its first call.
//
// Threads: the device server's loop.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device_server/call_steps.h"
#include "runtime/device_server/call_times.h"
#include "runtime/device_server/lane_pool.h"
#include "runtime/device_server/pinned_pool.h"
#include "runtime/device_server/task_registrations.h"

namespace fairlead {

struct TaskSession {
  std::vector<KernelCache::Lease> modules;  // outlive `kernels`, which are in them
  std::unique_ptr<KernelSession> kernels;
  std::unique_ptr<CallSteps> steps;  // of them, once a call has taken long on a device that is paced; else none
  // What it was registered with, to be registered again with kernels that can be cut.
  wire::RegisterSession frame;
  std::vector<UniqueFd> images;
  std::unique_ptr<TaskSession> replacement;  // that it becomes once no call of it runs
  int width_percent = 100;                   // of the device's SMs that its kernels are on at once, at most
  std::uint32_t sm_groups = 0;               // that its calls are launched on; 0: any SM
  std::uint64_t sms = 0;                     // those groups'
  std::string why_not_kept;                  // to the part of the SMs that was asked for; empty: it is, or is not wider
  DeviceObjects::RangeIndex range = 0;
  std::vector<wire::BoundObject> constants;
  bool busy = false;
  bool dropped = false;  // goes with its last call

  // How many of the kernel's blocks the SMs that it is launched on hold together, at least one.
  std::uint64_t blocks_at_once(const Occupancy& occupancy, std::size_t kernel) const {
    const std::uint64_t of_device = kernels->blocks_at_once(occupancy, kernel);
    if (sm_groups == 0) return of_device;
    return std::max<std::uint64_t>(1, of_device / occupancy.multiprocessors() * sms);
  }
};

// What calls of a device server work in. All outlive who has them.
struct CallResources {
  CudaContext& cuda;
  DeviceObjects& objects;
  LanePool& lanes;
  PinnedPool& pinned;
  CallTimesPool& times;
};

class SessionLoader {
 public:
  struct Options {
    Launching launching = Launching::kGraphs;
    Cublas* cublas = nullptr;   // null: none
    Bytes device_bytes{0};      // for objects
    bool keeps_to_sms = false;  // as the device's only server, as a rule: it knows which SMs others are on
  };
  SessionLoader(const CallResources& resources, TaskModules& modules, const Options& options)
      : resources_(resources),
        modules_(modules),
        options_(options),
        sms_(Occupancy(resources.cuda).multiprocessors()) {}

  // Takes the registration's task. Errors name the module or kernel.
  Result<TaskSession> load(TaskRegistration& registration);

  // Constants come with the session where memory is free, so that its first call does not wait for them. Nothing is evicted for it.
  // If it cannot be done, the first call brings them, and says what is wrong. With them comes what the driver has to be asked for:
  // memory that a call works in, and pinned memory for what it brings and takes. Both are anybody's afterwards. `request` is of
  // nobody else. While others run, making room in one piece may wait for them: it is left to the first call then.
  void preload(const wire::RegisterSession& frame, const TaskSession& session, RequestId request, bool device_is_idle);

 private:
  Result<CUmodule> load_module(TaskRegistration& registration, std::size_t module);
  Cublas* cublas_for(const KernelTask& task) const;
  Status keep_to(TaskSession& session, int most) const;

  const CallResources resources_;
  TaskModules& modules_;
  const Options options_;
  const std::uint64_t sms_;  // of the device
};

}  // namespace fairlead
