// What one instance may take of its device, as admission and the pacer see it: a width of the SMs, and how much of the time.
//
//   request   the part of every window that the instance is promised
//   limit     the part of every window that it gets at most
//
// Example: width 12, request 40, limit 80. While the instance has work, it may put kernels on 12 % of the SMs for at least 400 ms and
// at most 800 ms of every second. Request 0 and limit 100, the default, is best effort: no promise, and whatever others leave.
//
// Plain values.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "model/device.h"

namespace fairlead {

inline constexpr int kWholeDevice = 100;  // per cent of the SMs

struct PacedShare {
  FlowId flow;                       // whose virtual time its best-effort service is charged to
  int width_percent = kWholeDevice;  // of the SMs, 1-100; without MPS every instance has 100
  int request_percent = 0;           // of the time, 0-100
  int limit_percent = 100;           // of the time, 1-100, at least the request
  int weight = 1;                    // of the flow, 1 to 1000; ten times the author's
  Bytes memory{0};                   // of the device
  bool operator==(const PacedShare&) const = default;
};

// How wide instances are.
enum class Widths {
  kWhole,     // each takes the whole device while it runs: processes take turns
  kByAuthor,  // each takes what its author says: under MPS, and sessions of kernel tasks in one process
};

// What a function's author said, for one of its instances. `weight`: the function's, 0.01 to 100; what is below 0.1 counts as 0.1.
PacedShare paced_share(FlowId flow, const Share& share, double weight, Widths widths);

// kInvalidArgument names the tag, the value and the bound.
Status check(const PacedShare& share);

}  // namespace fairlead
