// The slices that pipelines have: which are free for one, which are theirs, taken from the core and given back to it.
//
// A slice that is taken is drained: what runs there ends in its own time, and then it is empty(). It comes back with its id. One device is
// left to functions that are no pipelines, as long as there are such.
//
// A slice that another pipeline is leaving may be taken as well: it is the other's until that gives it back, and then at once the next one's.
//
// Its health may drain it, too: that is another reason, and it stays drained until both are gone. Whoever has it then loses it.
//
// Threads: the core thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decide/pipeline/component_times.h"
#include "node/core_driver.h"
#include "node/functions.h"
#include "node/pipeline_placement.h"
#include "node/program_runner.h"
#include "runtime/pipeline/pipeline_program.h"

namespace fairlead {

class PipelineSlices {
 public:
  using Holder = std::uint64_t;  // a running pipeline

  // What it must know of devices.
  struct Devices {
    std::function<std::vector<Device>()> all;     // that are there
    std::function<bool(GpuId)> is_empty;          // no instance's process is on it
    std::function<void(GpuId)> end_idle_servers;  // of kernel tasks, that hold its memory
    GiveShare give_share;                         // what a server needs to use its device
    std::function<void()> look_soon = {};         // some came or went: `all` is to be read anew
  };

  // `times`: what components took so far, which all plans count on.
  PipelineSlices(CoreDriver& driver, const Functions& functions, std::shared_ptr<ComponentTimes> times)
      : driver_(driver), functions_(functions), times_(std::move(times)) {}
  void connect(Devices devices) { devices_ = std::move(devices); }

  Dag with_times(const PipelineProgram& program) const;

  // What a pipeline takes of all that is free, and of `leaving`, which others leave. kResourceExhausted says why nothing.
  Result<PipelinePlacement> plan(const PipelineProgram& program, const std::vector<Device>& leaving = {}) const;
  // What it would take of all that is free and these, each once, whoever has them or is promised them.
  std::optional<PipelinePlacement> plan_in_time(const PipelineProgram& program, std::vector<Device> held) const;
  // Until end_round() what is free is looked up once, and what is saved is in no plan but plan_in_time().
  void begin_round() { round_ = Round{.free = free(), .saved = {}}; }
  void save(const PipelinePlacement& placement);  // REQUIRES: in a round
  void end_round() { round_.reset(); }
  // One free slice for all of it, where it answers within its objective, or no later than on `now`. Empty: there is none.
  std::optional<PipelinePlacement> plan_whole(const PipelineProgram& program, const PipelinePlacement& now) const;

  void take(Holder holder, const PipelinePlacement& placement);
  // Those of them that are still there. REQUIRES: no process of it is there any more.
  void give_back(Holder holder, const PipelinePlacement& placement);
  bool are_held(Holder by, const PipelinePlacement& placement) const;  // nobody is leaving them any more
  // They are its own, and nothing is on them.
  bool are_empty(Holder holder, const PipelinePlacement& placement) const;
  std::optional<Holder> holder(GpuId gpu) const;
  bool is_promised(GpuId gpu) const { return next_.contains(gpu); }  // by who leaves it, to another one
  // Nothing runs there, and nobody is promised a place; those that nobody holds. Whole GPUs only where there are no slices at all.
  std::vector<Device> free() const;
  std::vector<Device> unheld() const;  // whatever runs there
  bool are_gone(const PipelinePlacement& placement) const;
  std::vector<DeviceNeed> needs_of_others() const;  // of functions and versions that are no pipelines
  // Why the first of them that cannot be used any more cannot: it is gone, or does not answer. "": all can.
  std::string lost(const PipelinePlacement& placement) const;
  void give_share(InstanceSpec& spec, GpuId gpu) const { devices_.give_share(spec, gpu, Share()); }
  void look_soon() const {
    if (devices_.look_soon) devices_.look_soon();
  }
  // Whether calls of functions that are no pipelines have waited for a second, each time that it was asked.
  bool others_wait(Instant now);

 private:
  struct Round {
    std::vector<Device> free;
    std::set<GpuId> saved;
  };
  std::vector<Device> free_now() const;  // but what is saved
  Result<PipelinePlacement> plan_on(const Dag& dag, const std::vector<Device>& slices) const;
  bool leaves_enough_to_others(const PipelinePlacement& placement) const;

  CoreDriver& driver_;
  const Functions& functions_;
  Devices devices_;
  std::map<GpuId, Holder> held_, next_;  // by whom; and who has it when that has left
  std::optional<Instant> waits_since_;
  std::optional<Round> round_;
  const std::shared_ptr<const ComponentTimes> times_;
};

}  // namespace fairlead
