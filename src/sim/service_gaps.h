// The service gap of MQFQ-Sticky's section 6: in each window of 30 s, the difference between the most and the least GPU
// service, per weight, among the flows that were backlogged during the whole window.
//
// Example: over [30 s, 60 s] A and B always have something queued, C is empty at 41 s. A is given 18 s, B 11 s, C 1 s: the
// gap is 7 s.
//
// What a bound is stated for, the gap over any interval, is measured by fairness_meter.h, off the same account.
//
// Threads: not thread-safe. Cost: O(1) per event, O(flows that wait) per window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.h"
#include "sim/service_received.h"

namespace fairlead::sim {

class ServiceGaps {
 public:
  explicit ServiceGaps(std::vector<double> weights, Duration window = std::chrono::seconds(30));

  // What follows happened at `now`; times do not fall.
  void queued(Instant now, std::size_t flow);    // one more waits
  void unqueued(Instant now, std::size_t flow);  // one fewer waits
  void started(Instant now, std::size_t flow);
  void ended(Instant now, std::size_t flow);
  void advance(Instant now);  // closes the windows that have ended

  double worst() const { return worst_; }
  double mean() const { return windows_ == 0 ? 0 : sum_ / static_cast<double>(windows_); }
  std::uint64_t windows() const { return windows_; }  // with at least two flows to compare
  // (end of the window, its gap), both in seconds.
  const std::vector<std::pair<double, double>>& each() const { return each_; }

 private:
  struct Flow {
    double weight = 1;
    std::size_t waiting = 0;
    std::size_t place = 0;  // in waiting_, while something waits
    bool empty_in_window = true;
    Duration before{0};  // received before this window, if something has waited since it began
  };
  void close_window();

  const Duration window_;
  std::vector<Flow> flows_;
  ServiceReceived received_;
  std::vector<std::size_t> waiting_;   // flows that have something waiting; unordered
  std::vector<std::size_t> compared_;  // those that had when the window began
  Instant end_;
  double worst_ = 0, sum_ = 0;
  std::uint64_t windows_ = 0;
  std::vector<std::pair<double, double>> each_;
};

}  // namespace fairlead::sim
