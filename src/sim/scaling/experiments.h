// What packers, scalers and profilers are compared on, each as one row per contestant.
//
//   orders    the paper's eight instances in each of their 420 orders on one device
//   churn     instances of a mix come and go (packing_runs.h)
//   static    sizes of one function's instances: what they cost over an exact optimum (size_runs.h)
//   cluster   sizes and packing of six functions together: devices over the fluid bound (size_runs.h)
//   bursts    load that bursts to 2 to 5 times within a second (bursts.h)
//   ramp      the paper's figure 12: load that rises to 4 times within a minute, a row for each seed (bursts.h)
//   profiler  trials until the chosen rectangle is known (profiler_runs.h)
//
// Threads: runs share nothing. Determinism: of the options.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead::sim {

struct ScalingOptions {
  std::vector<std::string> mixes = {"grid", "small"};  // of churn
  double reserve_percent = 0;  // of each device's time: rectangles keep nothing back, so nobody does here
  std::size_t threshold = 16;  // free rectangles, before the list is made anew
  double move_price = 0.2;     // of a device in use
  double idle_part = 0.3;      // of instances, at every event
  std::uint64_t events = 10'000;
  std::uint64_t seeds = 1;
  std::string predictor = "ewma";               // of bursts
  Duration length = std::chrono::seconds(300);  // of bursts, after a warm-up
  double trial_error = 0.05;                    // of profiler: a trial's standard deviation, as a part
};

// One row of a table: what was run, and named numbers in order.
struct ScalingRow {
  std::string experiment, contestant, workload;
  std::vector<std::pair<std::string, double>> numbers;
  std::uint64_t state_hash = 0;
};

std::vector<std::string_view> scaling_experiments();
// kInvalidArgument names what is not known.
Result<std::vector<ScalingRow>> run_scaling(std::string_view experiment, const ScalingOptions& options);

}  // namespace fairlead::sim
