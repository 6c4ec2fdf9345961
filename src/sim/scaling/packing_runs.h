// Packers side by side: the paper's eight instances in every order, and instances that come and go.
//
//   orders   four (12, 40), two (24, 40), two (50, 60) in each of their 420 orders on one device: in how many all eight stand
//   churn    instances of a mix come as a Poisson process and stay for exponential times, `live` of them in the mean; devices in use are
//            counted over time. At every event each instance is idle with probability `idle_part`, and may be moved then.
//
// Assumption: a third of the instances is idle at any moment, as instances with a Poisson load of 70 % are.
//
// Pure. Determinism: of the options.
#pragma once

#include <cstdint>
#include <string>

#include "decide/packing/packer.h"

namespace fairlead::sim {

struct Orders {
  int orders = 0;
  int all_placed = 0;
};
Orders papers_orders(const PackerOptions& options, double reserve_percent);

struct ChurnOptions {
  PackerOptions packer;
  std::string mix = "grid";  // of sim/shares/share_sets.h
  double live = 40;          // instances in the mean
  std::uint64_t events = 10'000;
  double idle_part = 0.3;
  DeviceRoom room{.clients = 48, .reserve_percent = 0};
  Bytes most_memory{0};  // of an instance: uniform from an eighth of it; 0: not counted
  std::uint64_t seed = 1;
};

struct Churn {
  double devices = 0;          // in use, mean over time
  double least_devices = 0;    // that the area or the memory of what is there needs, mean over time
  double moves_per_event = 0;  // an event is one that comes or goes
  std::uint64_t state_hash = 0;
};
Churn churn(const ChurnOptions& options);

}  // namespace fairlead::sim
