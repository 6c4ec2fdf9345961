// The sizes that a function's instances may have, and what a number of them costs.
//
// Idea. A size is usable where a request meets its objective on it although the quota runs out at the worst moment: execution + (1 - quota) x
// window is at most the objective. A function costs whichever of its dimensions fills more devices: area (SMs x time), memory, MPS clients.
//
// Example. ResNet, objective 69 ms, window 1 s: 24 % of the SMs at 100 % of the time take 14 ms and are usable; at 90 % of the time a request
// may wait 100 ms first, and they are not.
//
// Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "decide/profiling/throughput_model.h"

namespace fairlead {

struct InstanceSize {
  int width_percent = 100;                                             // of the SMs
  int quota_percent = 100;                                             // of the time
  double rate_per_s = 0;                                               // requests
  Duration execution{0};                                               // of a request that does not wait
  double area() const { return width_percent * quota_percent / 1e4; }  // of a device
  bool operator==(const InstanceSize&) const = default;
};

struct FunctionTerms {
  Duration objective{0};                      // from arrival to answer; 0: none
  Duration window = std::chrono::seconds(1);  // in which a quota is given
  Bytes memory{0};                            // of an instance on the device
  Bytes device_memory{0};                     // 0: not known, not counted
  int device_clients = 48;                    // of MPS; 0: not counted
  // Of a device: what an instance costs by itself.
  double cost(const InstanceSize& size) const;
  double memory_part() const;  // of a device, of one instance: memory or MPS clients
};

// The paper's 5 quotas x 7 widths, and every 4 % of the SMs x every 5 % of the time.
std::vector<InstanceSize> coarse_grid(const ThroughputModel& model);
std::vector<InstanceSize> fine_grid(const ThroughputModel& model);

// Empty: it is usable. Else why not, with value and bound.
std::string why_unusable(const InstanceSize& size, const FunctionTerms& terms);

struct SizedCount {
  InstanceSize size;
  int instances = 0;
};

struct SizeChoice {
  std::vector<SizedCount> sizes;
  double rate_per_s = 0;              // of all
  double devices = 0;                 // that they cost
  std::vector<std::string> rejected;  // sizes that were left out and why, the most telling first, a few
};

// What `counts` cost: the dimension that fills most devices.
double devices_of(const std::vector<SizedCount>& counts, const FunctionTerms& terms);

// FaST-GShare's Algorithm 1 for a gap to fill, with the errors of print mended: nothing is added where the gap is met exactly, and of residual
// sizes with the same throughput the least area is taken. As printed it knows neither objective nor memory, and where throughput is
// proportional to the quota all quotas tie; the smallest is taken, as the paper's "minimum" says.
SizeChoice printed_choice(const std::vector<InstanceSize>& sizes, double rate_per_s, const FunctionTerms& terms);
// The same over usable sizes alone, ties to the larger quota: the least that has to be changed for the objective.
SizeChoice filtered_choice(const std::vector<InstanceSize>& sizes, double rate_per_s, const FunctionTerms& terms);
// Ours: of all n x one usable size and at most two more for the rest, the cheapest; ties to the larger quota, then to fewer instances.
// sizes empty: no size is usable, and `rejected` says why.
SizeChoice cheapest_choice(const std::vector<InstanceSize>& sizes, double rate_per_s, const FunctionTerms& terms);

}  // namespace fairlead
