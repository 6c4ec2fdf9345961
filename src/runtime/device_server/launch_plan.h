// On which stream each kernel of a task runs, and which it waits for. Kernels that depend on nothing of each other get
// streams of their own; a chain stays on one stream and needs no event.
//
// Example: a and b write x and y, c reads both: a on stream 0, b on stream 1, c on stream 0 after b's event.
#pragma once

#include <cstdint>
#include <vector>

namespace fairlead {

struct LaunchPlan {
  struct Step {  // of the kernel at the same index
    std::uint32_t stream = 0;
    std::vector<std::uint32_t> waits;  // events
    std::int32_t records = -1;         // an event, after it
    bool operator==(const Step&) const = default;
  };
  std::vector<Step> steps;
  std::uint32_t streams = 1;
  std::uint32_t events = 0;
};

// before[k]: the earlier kernels that k must follow (model/kernel_task.h: dependencies()).
LaunchPlan make_launch_plan(const std::vector<std::vector<std::uint32_t>>& before, std::uint32_t max_streams);

}  // namespace fairlead
