// One instance on the modelled device of the laboratory of shares, and what came of it.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "decide/pacing/paced_share.h"
#include "sim/histogram.h"

namespace fairlead::sim {

// Kernels at full intensity on all SMs ask for this much of the device's bandwidth. Where those that run together ask for more than
// all of it, a kernel is stretched by its intensity x what is too much. 1.2 is an assumption: a device whose SMs, all reading, are a fifth
// too fast for its memory.
inline constexpr double kBandwidthOfAllSms = 1.2;

enum class Work : std::uint8_t {
  kEndless,  // always busy, one piece of work that never ends
  kClosed,   // `users` send requests, each the next one as soon as it is answered
  kPoisson,  // requests at random instants
  kBursts,   // requests in bursts of `burst`, the bursts at random instants
};

struct ShareClient {
  std::string name;
  PacedShare share;
  Duration least_kernel = std::chrono::microseconds(20);  // at its width, alone on the device; uniform between the two
  Duration most_kernel = std::chrono::microseconds(400);
  Duration gap{0};                      // host time between two kernels, in which the device does nothing for it
  double intensity = 0;                 // 0-1: part of the bandwidth that its SMs can ask for
  double fills_percent = kWholeDevice;  // of the SMs: what its kernels have blocks for, whatever its width
  Work work = Work::kEndless;
  int users = 1;          // of a closed loop
  Duration host{0};       // of a request, before its kernels: the instance is idle to the device. One request at a time
  Duration request{0};    // GPU time of a request, at its width and alone
  double rate_per_s = 0;  // of requests
  int burst = 1;
  Duration objective{0};  // of a request, from its arrival to its end; 0: none
};

struct ShareClientResult {
  Duration gpu_time{0};  // after the warm-up; kernels in flight, draining ones too
  std::uint64_t answered = 0, missed = 0;
  Histogram latency;
  double worst_part = 1;  // of what it was promised, in the window that gave it least
};

}  // namespace fairlead::sim
