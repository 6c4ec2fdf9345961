// What the simulator knows of a function: how long it runs, what its start costs, what it holds.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace fairlead::sim {

// When a function is called, where the workload is of kind "own" (see Stream in arrivals.h).
struct Calls {
  double per_second = 0;  // in the mean; 0: never
  double cv = 1.0;
  std::uint64_t together = 1;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  Duration begin{0};
};

struct FunctionModel {
  std::string name;
  Duration warm{0};        // one invocation alone on the device
  Duration cold_start{0};  // from the order to start an instance until it asks for work
  Bytes memory = mib(1536);
  double weight = 1.0;
  std::string tenant = {};
  std::optional<Duration> objective = {};
  double gpu_share = 1.0;  // of a run's time that is charged as GPU time
  Calls calls = {};
};

// Table 1 of the MQFQ-Sticky paper (GPU columns), its eight functions in their order: "imagenet" runs 2.253 s warm and
// 11.286 s cold, so its start costs 9.033 s.
const std::vector<FunctionModel>& table1();

// `count` functions, the eight again and again: "imagenet", ..., "pathfinder", "imagenet-2", ...
std::vector<FunctionModel> copies_of_table1(std::size_t count);

}  // namespace fairlead::sim
