// Runs calls of kernel tasks: takes their objects, queues copies and kernels without waiting for anything, and answers
// when the device says that they are done. The copies of a call run on the copy streams while kernels of earlier calls
// compute; calls of different sessions run on lanes (streams) of their own.
//
//   wait for the session ─> take memory, queue loads ─> lane: wait for loads, kernels, inline outputs out, done event
//                              (no room beside what runs: wait for a call to end)            └─> answer, release
//
// A session comes of a registration: task_registrations.h has its modules tried, session_loader.h finds its kernels. What a call puts
// on its lane is in task_call.h.
//
// With AddressSpaces::kPerTenant sessions are of several tenants: each tenant's objects, scratch memory and module variables
// are in a range of addresses of its own, which its kernels are fenced into.
//
// Phases are measured by events on the device but for device_malloc and overhead. A failed launch ends its call; an error
// of the context ends the process, which the node replaces.
//
// Threads: the device server's loop; the driver wakes it through wake_descriptor().
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"
#include "runtime/device_server/call_gates.h"
#include "runtime/device_server/long_calls.h"
#include "runtime/device_server/session_constants.h"
#include "runtime/device_server/session_loader.h"
#include "runtime/device_server/task_call.h"
#include "runtime/device_server/task_registrations.h"
#include "wire/device_frames.h"

namespace fairlead {

class TaskExecutor {
 public:
  using Send = std::function<void(const wire::FrameToNode&)>;
  struct Options {
    ObjectCacheOptions cache;
    AddressSpaces spaces = AddressSpaces::kOne;
    Launching launching = Launching::kGraphs;
    ModuleLimits modules;
    Cublas* cublas = nullptr;  // outlives the executor; null: none
    bool trials = false;       // no module is loaded before the node has said how its trial ended
  };
  static Result<std::unique_ptr<TaskExecutor>> create(CudaContext& cuda, const Options& options, Send send);

  void handle(wire::FrameToServer frame, std::span<const UniqueFd> descriptors);
  // Answers what is done and starts what can be. False: the context is lost and has been reported; end the process.
  bool progress();
  bool running() const { return !running_.empty(); }
  int wake_descriptor() const { return wakes_.done.get(); }  // readable when a call may be done
  void clear_wake();
  // Readable, likewise, when a call may have been let in that waits at its session's gate.
  void add_doorbells(std::vector<int>& descriptors) const { wakes_.gates.add_doorbells(descriptors); }

 private:
  TaskExecutor(CudaContext& cuda, std::unique_ptr<DeviceObjects> objects, std::unique_ptr<LanePool> lanes,
               const Options& options, Send send);

  template <typename Frame>
  void on(Frame& frame, std::span<const UniqueFd> descriptors);
  void run(wire::RunCall& frame, std::span<const UniqueFd> descriptors);
  void fetch(const wire::FetchObject& frame, std::span<const UniqueFd> descriptors);
  void drop_session(std::uint64_t session);
  bool end_registration(TaskRegistration registration, const Status& so_far);

  void start_waiting();
  void pace(const wire::PaceSession& frame, std::span<const UniqueFd> descriptors);
  void settle_gates();
  bool waits(std::uint64_t session) const;
  enum class Started { kYes, kEnded, kNoRoom };
  Started start(TaskCall& call);
  Started start_with_memory(TaskCall& call);
  Started refuse(TaskCall& call, const Error& why);
  Result<LaunchLane*> take_lane(const TaskSession& session);
  void tell_loaded(TaskCall& call);
  void finish(TaskCall& call);
  void answer(wire::CallDone done);
  static wire::CallDone outcome(const TaskCall& call);
  wire::ServerCounters counters() const;
  Status check_rings(const TaskCall& call) const;
  bool context_is_lost(const TaskCall* starting = nullptr);
  void erase_if_dropped(std::uint64_t session);
  void tell_constants();

  CudaContext& cuda_;
  const Send send_;
  const std::unique_ptr<DeviceObjects> objects_;
  const std::unique_ptr<LanePool> lanes_;
  struct HostMemory {  // that devices copy from and to
    PinnedPool pinned;
    StageRings rings;
  } host_;
  CallTimesPool times_;
  TaskModules modules_;
  SessionLoader loader_;
  SessionConstants constants_;
  TaskRegistrations registrations_;
  std::unordered_map<std::uint64_t, TaskSession> sessions_;
  std::deque<std::unique_ptr<TaskCall>> waiting_;
  std::vector<std::unique_ptr<TaskCall>> running_;  // in the order of their start
  std::uint64_t last_request_ = 0;
  struct Wakes {  // what the loop wakes for
    UniqueFd done;
    CallGates gates;
  } wakes_;
  LongCalls long_calls_;
  struct Health {
    CUevent probe = nullptr;  // never recorded: its state is the context's
    bool lost = false;
  } health_;
};

}  // namespace fairlead
