// Calls that would keep a device for longer than a frame where others are promised time of it. The first one of a session shows that they
// take long. From the next one on they are launched piece by piece (call_stepper.h); their kernels are cut when the session has been
// registered again, with twins in its modules (cut_session.h).
//
//   a call takes 50 ms, the device is paced ─> steps: kernel by kernel ─> registered again ─> steps: ranges of blocks
//
// Threads: the device server's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "runtime/device_server/call_stepper.h"

namespace fairlead {

class LongCalls {
 public:
  // What is registered again, with the files that the frame names.
  using Register = std::function<void(wire::RegisterSession& frame, const std::vector<UniqueFd>& files)>;

  LongCalls(CudaContext& cuda, DeviceObjects& objects, const StageRings& rings, CallGates& gates, Register again)
      : cuda_(cuda), gates_(gates), stepper_(cuda, objects, rings, gates), register_(std::move(again)) {}

  CallStepper& stepper() { return stepper_; }
  // Whether there are still kernels of the call to launch, or to wait for. One that the device refuses fails there.
  bool is_in_pieces(TaskCall& call, Instant now, HostCall wake);
  // The call's kernels took so long. REQUIRES: its session is not busy with it any more.
  void took(const TaskCall& call, Duration run);

  // A registration has ended: whether it was one of ours, which gives it the twins that its modules have.
  bool is_again(TaskRegistration& registration);
  // Its modules are loaded: the session has the kernels of `cut` as soon as no call of it runs. An error: it stays as it is.
  void replace(TaskSession& session, Result<TaskSession> cut);
  // No call of the session runs.
  void rest(TaskSession& session);
  void forget(std::uint64_t session) { being_cut_.erase(session); }

 private:
  void cut(TaskSession& session);
  void take_over(TaskSession& session, TaskSession& from);

  CudaContext& cuda_;
  CallGates& gates_;
  CallStepper stepper_;
  const Register register_;
  std::unordered_map<std::uint64_t, std::vector<bool>> being_cut_;  // sessions, and which kernels will have twins
};

}  // namespace fairlead
