// Every slice of some GPUs given to one function, everything busy: requests per second that are in time, by planner and hop.
//
// Goodput counts only pipelines whose request alone is within the objective. The paper's planner is given no objective, as its ranking has none;
// what it starts and is too late counts for nothing. `recut`: all GPUs get that one of the configurations that answers most.
// Source: FluidFaaS (HPDC '25), Figures 10 and 15. Pure. Determinism: of the arguments.
#pragma once

#include "sim/pipelines/applications.h"
#include "sim/pipelines/slices.h"

namespace fairlead::sim {

struct GoodputOptions {
  std::string partition = "p1";
  int gpus = 8;
  std::string planner = "replicas";
  HopCosts hop;
  bool recut = false;
  std::uint64_t steps = 4'000'000;
};

struct Goodput {
  double rate_per_s = 0;    // in time
  double bound_per_s = 0;   // that no planner passes with these slices and hops
  double late_part = 0;     // of pipelines, those later than the objective
  double compute_part = 0;  // compute slices in use, of all
};

Result<Goodput> goodput(const Application& application, const GoodputOptions& options);

}  // namespace fairlead::sim
