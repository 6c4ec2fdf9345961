// One call of a kernel task in a device server: what it was asked for, what it holds, and what it puts on its lane.
//
//   lane: wait for loads │ begin │ in-outs, inline inputs, zeros │ run begin │ kernels │ run end │ inline outputs │ done
//
// Tensors of rings (stage_rings.h) are copied on the lane as well: what a call reads before its kernels, what it writes behind them. `begin`
// is recorded once the first chunk of each is there, so that waiting for another device is no time of this one.
//
// Threads: the device server's loop.
#pragma once

#include <string>
#include <vector>

#include "runtime/device_server/call_layout.h"
#include "runtime/device_server/session_loader.h"
#include "runtime/device_server/stage_rings.h"

namespace fairlead {

struct TaskCall {
  wire::RunCall order;
  Instant received;
  RequestId request;
  TaskSession* session = nullptr;
  std::vector<ObjectNeed> needs;
  CallLayout layout;
  DeviceObjects::Scratch scratch;
  PinnedPool::Block staging;
  CallTimes times;
  Duration malloc_time{0};
  LaunchLane* lane = nullptr;
  bool loads = false;  // constants, and the node has not been told that they are there
  // Its kernels are launched piece by piece (call_stepper.h).
  struct Steps {
    bool there = false;
    bool paused = false;  // for the session's next place
    bool over = false;    // all that follows the kernels is queued
    Duration used{0};     // by pieces that have ended, as the session's page says
  };
  Steps steps;
  std::string error;
};

// Fills `needs`: each object that the call needs, once. Gives those whose bytes are not here.
std::vector<std::uint64_t> find_needs(TaskCall& call, const DeviceObjects& objects);

// Puts all of it on the call's lane and waits for nothing. `told` is called by the driver when its constants are there, if it loads
// some. REQUIRES: its lane, objects, scratch memory, staging and times are there.
struct HostCall {
  void (*function)(void*);
  void* data;
};
CUresult queue_call(const TaskCall& call, CudaContext& cuda, DeviceObjects& objects, const StageRings& rings,
                    HostCall told);
// The same in parts: what is before the kernels, and what is behind them.
CUresult queue_before(const TaskCall& call, CudaContext& cuda, DeviceObjects& objects, const StageRings& rings,
                      HostCall told);
CUresult queue_behind(const TaskCall& call, CudaContext& cuda, DeviceObjects& objects, const StageRings& rings);
// Where each buffer of the call is now: it may move between pieces.
std::vector<CUdeviceptr> addresses_of(const TaskCall& call, const DeviceObjects& objects);

// What of it took how long, and what it brought back. REQUIRES: it is done.
void describe_success(const TaskCall& call, const CudaContext& cuda, const DeviceObjects& objects, Instant now,
                      wire::CallDone& done);

}  // namespace fairlead
