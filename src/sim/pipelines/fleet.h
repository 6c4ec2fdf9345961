// Functions of several models under Azure-like bursts on modelled GPUs cut into slices: planner, keep-alive states, shared slices, order of the
// queue and router as src/decide/pipeline has them, on a virtual clock.
//
// Load. Each function's rate is its mean times a factor that is drawn anew after exponential times of 15 s: log-normal with a standard deviation
// of `burstiness`, 1 in the mean. Arrivals are Poisson. Load 1 is what no planner passes: each function's fluid bound on all slices (planner.h),
// over the number of functions.
//
// Instances. A stage runs one request at a time; a request goes on to the next stage after the hop. The whole way of a request is known when it
// is sent. An instance takes a request when its first stage is idle and it holds at most one more than it has stages. A function above 30 %
// utilisation gets instances by the planner for its rate of late, 1.5 standard deviations of what runs at a time, and what waits; one too many for 2 s drains. Where
// nothing is free, one of a function that has half of its wants more goes.
// Below, its requests take a shared slice in turns.
//
// Starts. A function is cold once: 5 s. After that `warm_starts` brings stages back from host memory at 12 GB/s, plus 50 ms for a process;
// without them each new instance takes 5 s, and only what was evicted from a shared slice comes back from the host.
//
// Not modelled: failures, copies that slow each other, memory of the host, batching. Requests never give up; what is not answered at the end is late.
//
// Pure. Determinism: of the options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decide/pipeline/keep_alive.h"
#include "decide/pipeline/planner.h"
#include "decide/pipeline/router.h"
#include "sim/pipelines/applications.h"

namespace fairlead::sim {

struct FleetOptions {
  std::vector<Application> functions;
  std::string partition = "p1";
  int gpus = 8;
  std::string planner = "need";
  HopCosts hop;
  QueueOrder order = QueueOrder::kLateLast;
  double late_share = 0.05;
  bool keeps_one_idle =
      true;  // the late are served where another instance stays idle, or nobody in time has come for a while
  double plan_objective = 0.95;  // of the objective: what is left is for waiting
  EvictionRule eviction = EvictionRule::kCost;
  bool warm_starts = true;
  bool migrates = true;
  double load = 0.6;
  double burstiness = 1;
  Duration length = std::chrono::seconds(300);  // that is counted, after 30 s
  std::uint64_t seed = 1;
};

struct FleetResult {
  double hit_rate = 0;                           // of all requests
  double answered_per_s = 0, in_time_per_s = 0;  // throughput, goodput
  double p50_ms = 0, p95_ms = 0;                 // of the answered
  double p95_of_objective =
      0;  // of those that could still be met when they were sent to an instance: latency over objective
  double queue_ms = 0, transfer_ms = 0, execution_ms = 0;  // means
  double mig_s = 0, gpu_s = 0;                       // seconds of active slices and GPUs, for each answered request
  double starts = 0, evictions = 0, migrations = 0;  // a minute
  std::vector<double> hits;                          // by function
  std::vector<double> latencies_ms;                  // sorted; of the answered
  std::uint64_t requests = 0, state_hash = 0;
};

// kInvalidArgument: a partition or planner that is not known.
Result<FleetResult> run_fleet(const FleetOptions& options);

}  // namespace fairlead::sim
