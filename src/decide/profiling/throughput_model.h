// What a function does on a part of a device: requests per second of (width, quota), by three numbers.
//
//   execution(width) = fixed + work / min(width, saturation)        throughput(width, quota) = quota / execution(width)
//
// Idea. A request has a part that SMs do not shorten (launches, copies, narrow kernels) and a part that is as long as its SMs are few. Beyond
// `saturation` it has no more blocks to put on them. Time is cut by tokens, so throughput is proportional to the quota (FaST-GShare 5.2,
// figure 8, measured so).
//
// Example (the paper's ResNet): 71.4 requests per second on the whole device, 37.1 on 12 % of the SMs, none more beyond 24 %: fixed 1.05 ms,
// work 311 ms x %, saturation 24 %.
//
// A plain value.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace fairlead {

struct ThroughputModel {
  double fixed_ms = 0;              // at least 0
  double work_ms = 1;               // on 1 % of the SMs; above 0
  double saturation_percent = 100;  // of the SMs, 1-100

  double execution_ms(double width_percent) const {
    return fixed_ms + work_ms / std::min(width_percent, saturation_percent);
  }
  Duration execution(double width_percent) const { return from_seconds(execution_ms(width_percent) / 1000); }
  double rate_per_s(double width_percent, double quota_percent) const {
    return quota_percent / 100 * 1000 / execution_ms(width_percent);
  }
  bool operator==(const ThroughputModel&) const = default;
};

}  // namespace fairlead
