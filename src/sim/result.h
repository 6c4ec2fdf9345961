// What a run is summed up to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/faults.h"
#include "sim/histogram.h"

namespace fairlead::sim {

struct FunctionResult {
  std::string name;
  std::uint64_t arrived = 0, answered = 0, failed = 0, refused = 0;
  std::uint64_t cold = 0, host_warm = 0, device_warm = 0;
  double service_seconds = 0;  // of the device, charged
  Duration greatest_wait{0};   // of an invocation at the head of the function's queue, until it was delivered
  Histogram latency;           // arrival to answer

  void merge(const FunctionResult& other);
};

// One of a few hundred moments of a run.
struct Sample {
  double at = 0;  // seconds
  std::size_t queued = 0;
  std::vector<float> served;  // by function: GPU seconds so far
};

// One invocation on a device, for the timeline.
struct Span {
  std::uint64_t gpu = 1;
  std::size_t function = 0;
  double begin = 0, end = 0;  // seconds
  bool cold = false;
};

struct RunResult {
  std::uint64_t seed = 0;  // of several: the first
  std::vector<FunctionResult> functions;
  Histogram latency;        // over all
  double seconds = 0;       // of virtual time, until the last answer
  double busy_seconds = 0;  // in which at least one invocation ran, summed over devices
  double worst_gap = 0;  // greatest difference of service, in seconds, between two flows backlogged over a whole 30 s
  double mean_gap = 0;   // over the 30 s windows with two such flows
  std::uint64_t gap_windows = 0;
  std::vector<std::pair<double, double>> gaps;  // of the first seed: end of the window, its gap
  std::uint64_t evictions = 0, swap_ins = 0, swap_outs = 0;
  std::uint64_t prefetches_in_time = 0, prefetches_late = 0, swap_outs_in_vain = 0;
  double swapped_gib = 0;
  std::vector<Sample> samples;          // of the first seed
  std::vector<Span> timeline;           // the first few hundred invocations of the first seed
  Faults::Counts faults{};              // that struck, by kind
  std::uint64_t restarts_survived = 0;  // asynchronous invocations that a restart found again
  std::uint64_t state_hash = 0;         // of every action in order: equal runs have equal hashes

  std::uint64_t arrived() const;
  std::uint64_t cold() const;
  std::uint64_t host_warm() const;
  std::uint64_t device_warm() const;
  // Variance over functions of their mean latency, s^2 (the paper's measure of unequal treatment).
  double variance_between_functions() const;

  // Sums up runs of several seeds.
  void merge(const RunResult& other);
};

}  // namespace fairlead::sim
