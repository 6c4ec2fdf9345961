// Calls that are launched piece by piece: on a device that is paced, of sessions whose calls are known to take long (call_steps.h). Between
// two pieces a call may wait for its session's next place; its memory, lane and stream stay its own.
//
//   begin ─> pieces, as they end the next ─┬─ all have ended ─> what follows the kernels is queued
//                  ^                       └─ the place is over, nothing is in flight ─> paused
//                  └───────────────── the session has a place again <────────────────────────┘
//
// Threads: the device server's loop.
#pragma once

#include "runtime/device_server/call_gates.h"
#include "runtime/device_server/task_call.h"

namespace fairlead {

class CallStepper {
 public:
  CallStepper(CudaContext& cuda, DeviceObjects& objects, const StageRings& rings, CallGates& gates)
      : cuda_(cuda), objects_(objects), rings_(rings), gates_(gates) {}

  // Whether the call is to be launched so. REQUIRES: it has not begun.
  bool takes(const TaskCall& call) const;
  // All are called with what wakes the loop. An error is the device's.
  CUresult begin(TaskCall& call, Instant now, HostCall wake);
  // After something may have ended, or the session may have got a place. REQUIRES: call.steps.there.
  CUresult go_on(TaskCall& call, Instant now, HostCall wake);
  // It is over where it is: what is in flight ends it. REQUIRES: call.steps.there.
  void end(TaskCall& call, HostCall wake);

  // Of a session that has none: calls of it are launched piece by piece from now on, where they take long.
  Status prepare(TaskSession& session);

 private:
  bool has_place(TaskCall& call, Instant now);
  CUresult queue(TaskCall& call, Instant now, HostCall wake);

  CudaContext& cuda_;
  DeviceObjects& objects_;
  const StageRings& rings_;
  CallGates& gates_;
};

}  // namespace fairlead
