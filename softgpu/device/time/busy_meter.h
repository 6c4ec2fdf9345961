// How busy a device was lately: time is cut into buckets of 20 ms, the last second of them is the sample window of
// NVML's utilisation. Statistics only: a process that dies in the middle of an update loses at most its own share.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/device/control.h"

namespace softgpu {

// CLOCK_MONOTONIC in nanoseconds, the same for all processes of the machine.
std::uint64_t monotonic_ns();

class BusyMeter {
 public:
  explicit BusyMeter(Control& control) : control_(control) {}

  // A kernel begins or ends to compute. REQUIRES: the caller holds the turn.
  void begin(std::uint64_t now_ns);
  void end(std::uint64_t now_ns);

  // Device memory that was read or written. Thread-safe.
  void moved(std::uint64_t bytes, std::uint64_t now_ns);

  struct Sample {
    double busy = 0;              // fraction of the last second, 0 to 1
    double bytes_per_second = 0;  // of device memory
  };
  // `running`: whether the holder of the turn lives; what a killed one began does not count.
  Sample sample(std::uint64_t now_ns, bool running = true) const;

  // The buckets of the last second that are over, oldest first; those in which nothing happened too.
  struct Moment {
    std::uint64_t end_ns = 0;
    double busy = 0;
    double bytes_per_second = 0;
  };
  std::vector<Moment> history(std::uint64_t now_ns) const;

  std::uint64_t total_busy_ns() const { return control_.busy_total_ns.load(); }

 private:
  BusyBucket& bucket(std::uint64_t index);

  Control& control_;
};

}  // namespace softgpu
