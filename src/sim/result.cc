#include "sim/result.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead::sim {

void FunctionResult::merge(const FunctionResult& other) {
  arrived += other.arrived;
  answered += other.answered;
  failed += other.failed;
  refused += other.refused;
  cold += other.cold;
  host_warm += other.host_warm;
  device_warm += other.device_warm;
  service_seconds += other.service_seconds;
  greatest_wait = std::max(greatest_wait, other.greatest_wait);
  latency.merge(other.latency);
}

std::uint64_t RunResult::arrived() const {
  std::uint64_t sum = 0;
  for (const FunctionResult& function : functions) sum += function.arrived;
  return sum;
}

std::uint64_t RunResult::cold() const {
  std::uint64_t sum = 0;
  for (const FunctionResult& function : functions) sum += function.cold;
  return sum;
}

std::uint64_t RunResult::host_warm() const {
  std::uint64_t sum = 0;
  for (const FunctionResult& function : functions) sum += function.host_warm;
  return sum;
}

std::uint64_t RunResult::device_warm() const {
  std::uint64_t sum = 0;
  for (const FunctionResult& function : functions) sum += function.device_warm;
  return sum;
}

double RunResult::variance_between_functions() const {
  double sum = 0, squares = 0;
  std::size_t count = 0;
  for (const FunctionResult& function : functions) {
    if (function.latency.count() == 0) continue;
    const double mean = function.latency.mean_seconds();
    sum += mean;
    squares += mean * mean;
    ++count;
  }
  if (count == 0) return 0;
  const double mean = sum / static_cast<double>(count);
  return std::max(0.0, squares / static_cast<double>(count) - mean * mean);
}

void RunResult::merge(const RunResult& other) {
  FL_CHECK(functions.size() == other.functions.size());
  for (std::size_t i = 0; i < functions.size(); ++i) functions[i].merge(other.functions[i]);
  latency.merge(other.latency);
  seconds += other.seconds;
  busy_seconds += other.busy_seconds;
  worst_gap = std::max(worst_gap, other.worst_gap);
  const auto windows = gap_windows + other.gap_windows;
  if (windows > 0) {
    mean_gap = (mean_gap * static_cast<double>(gap_windows) + other.mean_gap * static_cast<double>(other.gap_windows)) /
               static_cast<double>(windows);
  }
  gap_windows = windows;
  evictions += other.evictions;
  swap_ins += other.swap_ins;
  swap_outs += other.swap_outs;
  prefetches_in_time += other.prefetches_in_time;
  prefetches_late += other.prefetches_late;
  swap_outs_in_vain += other.swap_outs_in_vain;
  swapped_gib += other.swapped_gib;
  for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += other.faults[i];
  restarts_survived += other.restarts_survived;
  state_hash = state_hash * 1'000'003 ^ other.state_hash;
}

}  // namespace fairlead::sim
