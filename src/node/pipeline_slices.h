// The slices that pipelines have: which are free for one, which are theirs, taken from the core and given back to it.
//
// A slice that is taken is drained: what runs there ends in its own time, and then it is empty(). It comes back with its id. One device is
// left to functions that are no pipelines, as long as there are such.
//
// Threads: the core thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "node/core_driver.h"
#include "node/functions.h"
#include "node/pipeline_placement.h"

namespace fairlead {

class PipelineSlices {
 public:
  using Holder = std::uint64_t;  // a running pipeline

  // What it must know of devices.
  struct Devices {
    std::function<std::vector<Device>()> all;     // that are there
    std::function<bool(GpuId)> is_empty;          // no instance's process is on it
    std::function<void(GpuId)> end_idle_servers;  // of kernel tasks, that hold its memory
  };

  PipelineSlices(CoreDriver& driver, const Functions& functions) : driver_(driver), functions_(functions) {}
  void connect(Devices devices) { devices_ = std::move(devices); }

  // What a pipeline takes of all that is free. kResourceExhausted says why nothing.
  Result<PipelinePlacement> plan(const Dag& dag) const;
  // One free slice for all of it, where it answers within `at_most`. Empty: there is none.
  std::optional<PipelinePlacement> plan_whole(const Dag& dag, Duration at_most) const;

  void take(Holder holder, const PipelinePlacement& placement);
  void give_back(const PipelinePlacement& placement);  // those of them that are still there
  bool are_empty(const PipelinePlacement& placement) const;
  std::optional<Holder> holder(GpuId gpu) const;
  // The first of them that is gone.
  std::optional<Device> lost(const PipelinePlacement& placement) const;
  // Those that the core serves again, since their health had drained them as well and was mended, are drained again.
  void keep();

 private:
  std::vector<Device> free() const;
  bool leaves_one(const PipelinePlacement& placement) const;

  CoreDriver& driver_;
  const Functions& functions_;
  Devices devices_;
  std::map<GpuId, Holder> held_;
};

}  // namespace fairlead
