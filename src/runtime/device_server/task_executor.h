// Runs calls of kernel tasks: takes their objects, queues copies and kernels without waiting for anything, and answers
// when the device says that they are done. The copies of a call run on the copy streams while kernels of earlier calls
// compute; calls of different sessions run on lanes (streams) of their own.
//
//   wait for the session ─> take memory, queue loads ─> lane: wait for loads, kernels, inline outputs out, done event
//                              (no room beside what runs: wait for a call to end)            └─> answer, release
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
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"
#include "residency/session_residency.h"
#include "runtime/device_server/call_layout.h"
#include "runtime/device_server/device_objects.h"
#include "runtime/device_server/fenced_modules.h"
#include "runtime/device_server/kernel_cache.h"
#include "runtime/device_server/kernel_session.h"
#include "runtime/device_server/pinned_pool.h"
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
  int wake_descriptor() const { return wake_.get(); }  // readable when a call may be done
  void clear_wake();

 private:
  static constexpr std::size_t kLanes = 4;       // at first
  static constexpr std::size_t kMostLanes = 16;  // calls beyond share them

  struct Session {
    std::vector<KernelCache::Lease> modules;  // outlive `kernels`, which are in them
    std::unique_ptr<KernelSession> kernels;
    DeviceObjects::RangeIndex range = 0;
    std::vector<wire::BoundObject> constants;
    bool busy = false;
    bool dropped = false;  // goes with its last call
  };
  // On its way to a session. Each module is loaded, on trial, or the same as one before it.
  struct Registration {
    Instant begun;
    wire::RegisterSession frame;
    KernelTask task;
    DeviceObjects::RangeIndex range = 0;
    std::vector<KernelCache::Lease> modules;
    std::vector<std::string> code;      // of those on trial: as it came; then, where it is fenced, for the driver
    std::vector<std::size_t> on_trial;  // modules, in the order of the trial
  };
  struct Times {
    CopyStreams::Batch load;                                                          // on the copy streams
    CUevent begin = nullptr, run_begin = nullptr, run_end = nullptr, done = nullptr;  // on the lane
  };
  struct Call {
    wire::RunCall order;
    Instant received;
    RequestId request;
    Session* session = nullptr;
    std::vector<ObjectNeed> needs;
    CallLayout layout;
    DeviceObjects::Scratch scratch;
    PinnedPool::Block staging;
    Times times;
    Duration malloc_time{0};
    LaunchLane* lane = nullptr;
    bool loads = false;  // constants, and the node has not been told that they are there
    std::string error;
  };

  TaskExecutor(CudaContext& cuda, std::unique_ptr<DeviceObjects> objects, const Options& options, Send send);

  void on(wire::RegisterSession& frame, std::span<const UniqueFd> descriptors);
  void on(wire::TrialEnded& frame, std::span<const UniqueFd> descriptors);
  void on(wire::ModuleTrial& frame, std::span<const UniqueFd> descriptors);
  void on(wire::ModulesMeasured& frame, std::span<const UniqueFd> descriptors);
  void on(wire::VariablesPlaced& frame, std::span<const UniqueFd> descriptors);
  void on(wire::ModulesFenced& frame, std::span<const UniqueFd> descriptors);
  void on(wire::DropSession& frame, std::span<const UniqueFd> descriptors);
  void on(wire::RunCall& frame, std::span<const UniqueFd> descriptors);
  void on(wire::FetchObject& frame, std::span<const UniqueFd> descriptors);
  void on(wire::DropObject& frame, std::span<const UniqueFd> descriptors);
  Status supply(const std::vector<wire::SuppliedObject>& objects, std::span<const UniqueFd> descriptors,
                DeviceObjects::RangeIndex range);
  Result<DeviceObjects::RangeIndex> range_of(const std::string& tenant);
  std::string module_key(const Registration& registration, std::size_t module) const;
  Status prepare(Registration& registration, std::span<const UniqueFd> descriptors);
  Status prepare_module(Registration& registration, std::size_t module, std::span<const UniqueFd> descriptors);
  void find_loaded(Registration& registration);
  void ask_for_trial(Registration& registration);
  void end_trial(std::uint64_t session, Status outcome);
  void begin_next_trial(DeviceObjects::RangeIndex range);
  static Status of_module(const Registration& registration, std::size_t index, const Error& why);
  void drop(const Registration& waiting);
  void finish(Registration registration, Status so_far);
  Result<Session> load_session(Registration& registration);
  void leave_rooms(const Registration& registration);
  Result<std::string> code_for_driver(DeviceObjects::RangeIndex range, const std::string& key, std::string image);
  Result<KernelCache::Lease> load_module(const std::string& key, const std::string& code);
  template <typename Attempt>
  auto with_room(Attempt attempt);
  Cublas* cublas_for(const KernelTask& task) const;
  void forget(const std::vector<std::string>& modules);

  void start_waiting();
  enum class Started { kYes, kEnded, kNoRoom };
  Started start(Call& call);
  LaunchLane& take_lane();
  Status make_lane();
  void tell_loaded(Call& call);
  Started refuse(Call& call, const Error& why);
  bool find_needs(Call& call);
  CUresult queue(Call& call, LaunchLane& lane);
  CUresult queue_inputs(const Call& call, std::span<const CUdeviceptr> addresses, CUstream stream);
  CUresult queue_outputs(const Call& call, std::span<const CUdeviceptr> addresses, CUstream stream);
  std::vector<CUdeviceptr> addresses_of(const Call& call) const;
  Result<Times> take_times();
  void finish(Call& call);
  void answer(wire::CallDone done);
  wire::CallDone outcome(const Call& call) const;
  wire::ServerCounters counters() const;
  bool context_is_lost(const Call* starting = nullptr);
  void erase_if_dropped(std::uint64_t session);
  void note_constants(const wire::RegisterSession& frame, const KernelTask& task);
  void preload(const wire::RegisterSession& frame, const KernelSession& kernels, std::uint32_t range);
  void tell_missing_constants();

  CudaContext& cuda_;
  std::unique_ptr<DeviceObjects> objects_;
  const AddressSpaces spaces_;
  const Launching launching_;
  Cublas* const cublas_;
  const Bytes device_bytes_;  // for objects
  const bool trials_;
  const Send send_;
  KernelCache modules_;
  FencedModules fenced_;
  std::map<std::string, DeviceObjects::RangeIndex> tenants_;  // with kPerTenant
  PinnedPool pinned_;
  std::vector<std::unique_ptr<LaunchLane>> lanes_;
  std::uint32_t lane_events_ = 0;  // of each
  std::size_t next_lane_ = 0;
  std::vector<Times> free_times_;
  std::unordered_map<std::uint64_t, Session> sessions_;
  std::map<std::uint64_t, Registration> registrations_;  // that wait for a trial, by session
  // By range, sessions of registrations_: whose trial is not over, and those behind it.
  std::map<DeviceObjects::RangeIndex, std::uint64_t> on_trial_;
  std::map<DeviceObjects::RangeIndex, std::deque<std::uint64_t>> held_back_;
  std::deque<std::unique_ptr<Call>> waiting_;
  std::vector<std::unique_ptr<Call>> running_;  // in the order of their start
  SessionResidency residency_;
  double load_bytes_per_second_;  // of the last large load
  std::uint64_t last_request_ = 0;
  UniqueFd wake_;
  CUevent probe_ = nullptr;  // never recorded: its state is the context's
  bool lost_ = false;
};

}  // namespace fairlead
