// Functions whose load bursts to 2 to 5 times the usual within a second: a scaler and a packer on modelled devices.
//
// Load: that of burst_load.h, bursts or ramps (the paper's figure 12).
//
// Devices. As many as are asked for. An instance that has something to do runs at full speed until its quota of the window (1 s) is used, and
// beyond it in what others leave of the SMs. Where those within their quota ask for more than all SMs, each has its quota's speed and the same
// part of the rest: what the pacer gives in the limit of short frames. Requests of a function wait in one queue, first come, first served.
//
// Counted from the second minute on: requests answered later than their objective, or not at all; the area (SMs x time) that is promised
// and the devices in use, over the fluid bound: every request at the least area with which it meets its objective.
//
// Not modelled: failures, memory moves that slow each other, a start that slows others.
//
// Pure. Determinism: of the options.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "decide/packing/packer.h"
#include "sim/burst_load.h"
#include "sim/shares/function_shapes.h"

namespace fairlead::sim {

struct BurstFunction {
  FunctionShape shape;
  double usual_rate_per_s = 0;
};

struct BurstOptions {
  std::string scaler = "fleet";
  std::string predictor = "ewma";
  double headroom = 1;  // of algorithm1 (scaling/scaler.h)
  PackingRule packing = PackingRule::kExact;
  LoadShape shape = LoadShape::kBursts;
  std::vector<BurstFunction> functions;
  double reserve_percent = 0;
  bool borrows = true;       // idle SMs beyond the quota
  Duration least_period{0};  // decisions are not more often, and not on events, where it is above 0
  Duration length = std::chrono::seconds(300);
  std::uint64_t seed = 1;
};

struct BurstResult {
  std::vector<double> missed_percent;  // of each function
  double area_of_bound = 0;
  double devices_of_bound = 0;
  double parked = 0;  // instances in host memory, in the mean
  double cold_starts_per_minute = 0, returns_per_minute = 0;
  std::uint64_t requests = 0;
  std::uint64_t state_hash = 0;
};

// REQUIRES: the scaler and the predictor are known, each function has a size that meets its objective.
BurstResult run_bursts(const BurstOptions& options);

// Least area x time in which a request meets its objective, in devices x seconds.
double least_area_per_request(const FunctionShape& shape);

}  // namespace fairlead::sim
