// One workload under three schedulers: the node's; FCFS with the node's starts, eviction and no cold duplicates ("fcfs"); and
// the MQFQ-Sticky paper's ("paper"). How much worse is the first than each of the others, for all, in the tail, and for the
// function that fares worst?
//
// Threads: stateless. Determinism: as Simulation.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/result.h"
#include "sim/scenario.h"

namespace fairlead::sim {

enum class Rival { kFcfs, kPaper };
// kWorstFlow: the greatest ratio of mean latencies among functions that ask for no more than their share.
enum class Measure { kMean, kP99, kWorstFlow };
inline constexpr std::array kRivals = {Rival::kFcfs, Rival::kPaper};
inline constexpr std::array kMeasures = {Measure::kMean, Measure::kP99, Measure::kWorstFlow};
inline constexpr std::size_t kRatios = kRivals.size() * kMeasures.size();
const char* name_of(Rival rival);      // "fcfs", "paper"
const char* name_of(Measure measure);  // "mean", "p99", "worst-flow"

// A function that asks for no more than its share, and waited longer than it may.
struct LateFlow {
  std::string name;
  Duration waited{0};   // the longest at the head of its queue, under the node's scheduler
  Duration allowed{0};  // the larger of 1.2 of that under FCFS and the proved bound, where one is known
};

struct Comparison {
  RunResult node;
  std::array<RunResult, kRivals.size()> rivals;  // by Rival
  std::vector<LateFlow> late;

  const RunResult& rival(Rival which) const { return rivals[static_cast<std::size_t>(which)]; }
  // Of the node's to the rival's; 1 where nothing was called. `within_share` is as within_share() gives it.
  double ratio(Measure measure, Rival which) const;
  // The same to the better of the two rivals.
  double worst_ratio(Measure measure) const;

  std::vector<char> within_share;  // by function
};

// REQUIRES: the scenario is valid and its trace loaded. Its scheduler's settings are overwritten. Seeds are summed up.
Comparison compare(const Scenario& workload);

// Whether the GPU seconds of the function's invocations are at most its weight's part of what the devices have.
std::vector<char> within_share(const Scenario& workload, const RunResult& run);

// The longest that the head of the function's queue can wait under the node's scheduler, as docs/explanation/fairness.md proves.
// Memory included; with noise and beside starts a run is taken to last at most twice its time alone. Never empty today.
std::optional<Duration> waiting_bound(const Scenario& workload, std::size_t function);

// What is wanted of any workload: beside the better of the rivals, and of a flow's wait beside FCFS's.
struct ComparisonBounds {
  double mean = 1.2, p99 = 1.5, wait = 1.2;
};
inline constexpr ComparisonBounds kBounds;

// What of `kBounds` does not hold, a line each: "mean is 3.20 x the better of fcfs and paper, the bound is 1.2 x".
std::vector<std::string> beyond_bounds(const Comparison& comparison);

}  // namespace fairlead::sim
