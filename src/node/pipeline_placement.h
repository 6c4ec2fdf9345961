// Which of the slices that are free now a pipeline takes: the planner's answer (decide/pipeline), with slices of this node in it, and a
// sentence for people. One slice for each stage that needs a GPU; none for others.
//
// Pure. Threads: plain functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "decide/pipeline/dag.h"
#include "model/device.h"

namespace fairlead {

struct PipelinePlacement {
  struct Stage {
    Device device;  // of no id where nothing of the stage needs a GPU
    std::vector<std::size_t> components;
    bool has_slice() const { return static_cast<bool>(device.id); }
  };
  std::vector<Stage> stages;
  Duration latency{0};    // predicted, of a request alone
  double rate_per_s = 0;  // likewise, of its slowest stage
  std::string why;        // what was taken, and what was passed over

  std::vector<Device> slices() const;  // of its stages, those that have one
};

// What a function that is no pipeline needs of a device.
struct DeviceNeed {
  Bytes memory{0};
  std::string mig_profile;  // model/mig_tag.h; "": any device
};
// Whether each of `others` that had a device that holds it has one afterwards, and one is left at all where there are others.
bool leaves_enough(const std::vector<Device>& before, const std::vector<Device>& after,
                   const std::vector<DeviceNeed>& others);

std::string slice_type(const Device& device);  // "2g" of "2g.20gb"; a whole GPU is "7g"
int compute_slices(const PipelinePlacement& placement);
// Of a request alone, on these slices, by the times that the Dag has now. Empty: the function is cut otherwise by them.
std::optional<Duration> latency_of(const Dag& dag, const PipelinePlacement& placement);

// kResourceExhausted: nothing fits; the message says why of the first that was looked at. `objective` 0: none.
Result<PipelinePlacement> place_pipeline(const Dag& dag, const std::vector<Device>& free);
// The same with one stage alone, on the least slice where it fits and is not slower than `at_most`.
Result<PipelinePlacement> place_whole(const Dag& dag, const std::vector<Device>& free, Duration at_most);

}  // namespace fairlead
