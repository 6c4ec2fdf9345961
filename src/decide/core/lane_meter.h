// Lanes of kernel tasks, GPU by GPU: how many of their calls run on it at once, measured where the options say so
// (sharing/measured_lanes.h), and whether they have their turn at all or programs have.
//
// Example: D = 2 and up to 8 lanes. Two calls compute in the time of one: a third lane is tried. A program starts there: while it runs or
// waits, calls take its slots as everybody does, and nothing is measured less.
//
// Threads: the core's.
#pragma once

#include <map>

#include "decide/core/tables.h"
#include "decide/sharing/measured_lanes.h"

namespace fairlead {

class LaneMeter {
 public:
  explicit LaneMeter(CoreTables& tables) : tables_(tables) {}

  // The GPU is in the pool. No effect where a start that holds a slot must find an instance that can go.
  void add(const GpuSpec& gpu);
  void remove(GpuId gpu) { measured_.erase(gpu); }
  // D is another: lanes go from D upwards, so where they are measured they are measured anew.
  void slots_changed(GpuId gpu, std::size_t slots);

  // Before each dispatch: who has his turn on which GPU, programs or kernel tasks?
  void tell_turns() {
    const CoreOptions& options = tables_.options;
    if (options.task_lanes > 0 || options.most_task_lanes > 0 || options.task_loads_per_gpu > 0) tell_turns_there();
  }

  // What is bound to the instance computes from now on: all that it needs is on the device.
  void begin(Instant now, const Instance& instance) {
    if (!measured_.empty()) begin_measured(now, instance);
  }
  // It is over. `says_something`: how long it took is how long it takes; false: it failed, or was stopped.
  void end(Instant now, InvocationId id, bool says_something) {
    if (!measured_.empty()) end_measured(now, id, says_something);
  }
  void forget(FlowId flow);  // the function is not there any more

 private:
  void tell_turns_there();
  void begin_measured(Instant now, const Instance& instance);
  void end_measured(Instant now, InvocationId id, bool says_something);

  CoreTables& tables_;
  std::map<GpuId, MeasuredLanes> measured_;
};

}  // namespace fairlead
