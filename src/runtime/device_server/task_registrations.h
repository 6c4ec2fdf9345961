// Registrations of kernel tasks, from the frame until their modules may be loaded. Where modules are tried first, a process of its
// own fences and loads them, and everything else goes on: what a stranger wrote is read by no thread that others wait for.
//
//   frame ─> objects taken ─┬─ all modules are loaded already ─────────────────────────────> ended(registration)
//                           └─ ModuleTrial ─> ModulesMeasured ─> room taken, VariablesPlaced       │
//                              ModulesFenced ─> variables copied ─> TrialEnded ───────────────────-┘
//
// A range has one trial at a time: the registrations behind it wait for its end, since they may be of the same modules.
//
// Threads: the device server's loop.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "model/kernel_task.h"
#include "runtime/device_server/task_modules.h"
#include "wire/device_frames.h"

namespace fairlead {

// On its way to a session. Each module is loaded, on trial, or the same as one before it.
struct TaskRegistration {
  Instant begun;
  wire::RegisterSession frame;
  KernelTask task;
  DeviceObjects::RangeIndex range = 0;
  // By module of the task:
  std::vector<std::string> keys;
  std::vector<KernelCache::Lease> modules;
  std::vector<std::string> code;      // of those on trial: as it came; then, where it is fenced, for the driver
  std::vector<std::size_t> on_trial;  // modules, in the order of the trial
  std::vector<UniqueFd> images;       // as they came; one that is none could not be kept
  // By kernel of the task: it has a twin in its module (cut_session.h). Empty: none has.
  std::vector<bool> twins;
};

// A module as it came. kIo: the file is shorter than that.
Result<std::string> read_module_image(const UniqueFd& file, std::uint64_t bytes);

// What came with a frame is known to `objects` from now on. Errors: DeviceObjects::supply.
Status supply_objects(DeviceObjects& objects, const std::vector<wire::SuppliedObject>& supplied,
                      std::span<const UniqueFd> descriptors, DeviceObjects::RangeIndex range);

class TaskRegistrations {
 public:
  struct Options {
    bool trials = false;             // no module is loaded before the node has said how its trial ended
    std::uint32_t architecture = 0;  // of the device, for who fences
  };
  using Send = std::function<void(const wire::FrameToNode&)>;
  // Its modules may be loaded, or the Status says why they may not. False: nothing more can be registered, ever.
  using Ended = std::function<bool(TaskRegistration, Status)>;

  TaskRegistrations(DeviceObjects& objects, TaskModules& modules, Options options, Send send, Ended ended)
      : objects_(objects), modules_(modules), options_(options), send_(std::move(send)), ended_(std::move(ended)) {}

  void begin(wire::RegisterSession& frame, std::span<const UniqueFd> descriptors);
  // Of sessions that are not waiting (any more) these change nothing.
  void measured(const wire::ModulesMeasured& frame);
  void fenced(wire::ModulesFenced& frame);
  void tried(const wire::TrialEnded& frame);
  bool drop(std::uint64_t session);  // false: it does not wait here

 private:
  using RangeIndex = DeviceObjects::RangeIndex;

  Result<RangeIndex> range_of(const std::string& tenant);
  Status prepare(TaskRegistration& registration, std::span<const UniqueFd> descriptors);
  Status prepare_module(TaskRegistration& registration, std::size_t module, std::span<const UniqueFd> descriptors);
  void find_loaded(TaskRegistration& registration);
  void ask_for_trial(TaskRegistration& registration);
  void end_trial(std::uint64_t session, Status outcome);
  void begin_next_trial(RangeIndex range);
  void end(TaskRegistration registration, Status outcome);
  static Status of_module(const TaskRegistration& registration, std::size_t index, const Error& why);

  DeviceObjects& objects_;
  TaskModules& modules_;
  const Options options_;
  const Send send_;
  const Ended ended_;
  std::map<std::string, RangeIndex> tenants_;          // where each has a range
  std::map<std::uint64_t, TaskRegistration> waiting_;  // for a trial, by session
  // By range, sessions of waiting_: whose trial is not over, and those behind it.
  std::map<RangeIndex, std::uint64_t> on_trial_;
  std::map<RangeIndex, std::deque<std::uint64_t>> held_back_;
  bool goes_on_ = true;
};

}  // namespace fairlead
