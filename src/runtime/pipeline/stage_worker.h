// A process that runs components of one stage: a device server (stage_process.h), or a program without a GPU (program_process.h); or all
// that a stage has (stage_workers.h). What runs when is RequestFlow's to say.
//
// Threads: the loop's. Events never come from inside a call.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "runtime/pipeline/host_ring.h"
#include "wire/device_frames.h"

namespace fairlead {

class StageWorker {
 public:
  struct Events {
    std::function<void()> ready;
    std::function<void(std::string why)> lost;  // its process was reaped, or could not start; nothing follows
    std::function<void(wire::CallDone)> done;
  };
  virtual ~StageWorker() = default;  // ends the process; nobody waits for its end, or hears of it

  // REQUIRES: is_ready(). `call` names a component's ports by the buffers of its ComponentTask.
  virtual void run(std::size_t component, wire::RunCall call) = 0;
  virtual void drop(std::uint64_t object) = 0;  // that a call left on the device
  // Rings of another pipeline, beside its own: one that calls of a component read from now on; and all but these are read no more.
  virtual void open_other(std::size_t component, const HostRing& ring) = 0;
  virtual void keep_others(const std::set<std::uint64_t>& numbers) = 0;
  virtual void end(std::string why) = 0;  // lost follows, and says why

  virtual bool is_ready() const = 0;
  virtual std::int64_t pid() const = 0;  // 0: there is none
};

}  // namespace fairlead
