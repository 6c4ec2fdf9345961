// How instances of one kind of function are run: programs in sandboxes (program_runner.h), kernel tasks in device servers
// (kernel_task_runner.h). The core schedules all kinds alike, and so does the node: the kind of a function is looked at once,
// where the runner of a new instance is chosen.
//
//   start ──> ready (next) ──deliver──> answered ──> next ── ... ──kill, or by itself──> gone
//
// No decisions here. Threads: everything on the io_context's thread; events never come from inside a call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/units.h"
#include "decide/pacing/paced_share.h"
#include "decide/residency/residency.h"
#include "node/functions.h"
#include "runtime/instance_host.h"

namespace fairlead {

// What an instance's processes did with kernels since it started. Never falls.
struct LaunchCounts {
  std::uint64_t launches = 0;
  std::uint64_t gate_waits = 0;          // launches that found the shim's gate closed
  std::uint64_t passed_through = 0;      // calls that the shim left to the driver because something was in doubt
  std::uint64_t unhooked_functions = 0;  // entry points handed out that no hook is known for
};

// What an instance holds of its device, and has used of it since it started.
struct DeviceUse {
  MemoryUse memory;
  Duration gpu_time{0};  // never falls
  bool is_busy = false;  // work on the device goes on
  LaunchCounts launches;
};

// Whose word DeviceUse is.
enum class UseSource {
  kMeasured,  // the node's own processes'
  kReported,  // the function's: held against what the device says
};

struct StartOrder {
  InstanceId instance;
  GpuId gpu;
  Bytes device_memory{0};              // of the GPU; bounds what the instance can claim
  PacedShare share = {};               // of the device's time and width, as admission counted it
  const RegisteredFunction& function;  // during the call
};

// Of an instance's device memory, with what it took.
struct MemoryMoved {
  MoveDirection direction;
  MoveOutcome outcome;
  Bytes bytes{0};
  Duration total_time{0};
  Duration copy_time{0};  // part of it
};

struct MemoryEvents {
  std::function<void(InstanceId, const MemoryMoved&)> moved;  // one for each order
  // Answered by grant_room() with the same request.
  std::function<void(InstanceId, std::uint64_t request, Bytes)> needs_room;
  std::function<void(InstanceId)> wants_memory;   // its memory is away, and it waits for it
  std::function<void(InstanceId)> usage_changed;  // look at its use()
};

class Runner {
 public:
  virtual ~Runner() = default;

  // Failures arrive as gone().
  virtual void start(const StartOrder& order) = 0;
  // REQUIRES: the instance waits in `next`.
  virtual void deliver(InstanceId instance, DeliverRequest request) = 0;
  // Nobody waits for the answer any more: what has not begun may be answered as failed. Unknown: no effect.
  virtual void abandoned(InvocationId) {}
  // gone() follows. Unknown or already gone: no effect.
  virtual void kill(InstanceId instance) = 0;

  // Empty: it has never used its device.
  virtual std::optional<DeviceUse> use(InstanceId instance) = 0;
  virtual UseSource use_source() const = 0;

  // Orders to move memory, of those who reported memory that can move. `deadline`: for its work to end.
  virtual void swap_out(InstanceId instance, Bytes bytes, Duration deadline) = 0;
  virtual void swap_in(InstanceId instance) = 0;
  // Its share of the device is another from now on. Of those who are not paced: no effect.
  virtual void pace(InstanceId, const PacedShare&) {}
  virtual void grant_room(InstanceId instance, std::uint64_t request, bool granted) = 0;

  // What it has logged since its current or last delivery, the last 4 KiB. "": it has no log.
  virtual std::string log_tail(InstanceId instance) const = 0;
  // The ancestor of all its processes. 0: it has none, or none yet.
  virtual int init_pid(InstanceId instance) const = 0;
};

}  // namespace fairlead
