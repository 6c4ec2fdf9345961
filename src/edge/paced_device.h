// Who put kernels on a device when, of a device on which somebody has a quota (docs/explanation/pacer.md).
//
// Example: f has 40 % of the time. Of its instance 7 the last place began 12 ms before the answer, was to end 10 ms before it, and had
// drained 9.8 ms before it.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace fairlead {

struct PacedInstance {
  InstanceId instance;
  std::string function;  // or version, "f:3"
  int width_percent = 100, request_percent = 0, limit_percent = 100;
  std::string state;  // place_state_name()
  bool operator==(const PacedInstance&) const = default;
};

// One instance's hold of the device. How long ago, as the answer is made.
struct HeldPlace {
  InstanceId instance;  // that may be gone
  int width_percent = 100;
  Duration begin{0}, until{0};  // it was to end then
  Duration end{0};              // it had drained, or was revoked
  bool is_revoked = false;
  bool operator==(const HeldPlace&) const = default;
};

struct PacedDevice {
  GpuId gpu;
  Duration frame{0};
  bool is_realtime = false;  // the pacer's thread has SCHED_FIFO
  std::uint64_t late = 0;    // decisions more than 0.5 ms after they were due, since the pacer began
  std::vector<PacedInstance> instances;
  std::vector<HeldPlace> places;  // the last 512 that are over, oldest first
  bool operator==(const PacedDevice&) const = default;
};

}  // namespace fairlead
