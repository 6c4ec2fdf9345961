// From a registration whose modules may be loaded to a session that calls can run in, and what is made ready for its first call.
//
// Threads: the device server's loop.
#pragma once

#include <memory>
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
  DeviceObjects::RangeIndex range = 0;
  std::vector<wire::BoundObject> constants;
  bool busy = false;
  bool dropped = false;  // goes with its last call
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
    Cublas* cublas = nullptr;  // null: none
    Bytes device_bytes{0};     // for objects
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

  const CallResources resources_;
  TaskModules& modules_;
  const Options options_;
  const std::uint64_t sms_;  // of the device
};

}  // namespace fairlead
