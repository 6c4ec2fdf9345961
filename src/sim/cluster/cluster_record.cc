#include "sim/cluster/cluster_record.h"

#include <algorithm>

namespace fairlead::sim {
namespace {

// A loss comes at 10 s. Its p99 is compared with that of the seconds before.
constexpr std::size_t kLoss = 10, kBefore = 5;
constexpr double kBack = 1.5;

}  // namespace

void ClusterRecord::sent(std::size_t place) {
  places_ += static_cast<double>(place);
  ++routed_;
}

void ClusterRecord::answered(const ClusterAnswer& answer) {
  if (answer.call.arrived < measured_from_) return;
  if (answer.is_refused) return refused();
  ++counted_.calls;
  cold_ += answer.is_cold ? 1 : 0;
  const Duration latency = answer.at - answer.call.arrived;
  latency_.add(latency);
  const auto second = static_cast<std::size_t>(to_seconds(answer.at - measured_from_));
  if (by_second_.size() <= second) by_second_.resize(second + 1);
  by_second_[second].add(latency);
}

void ClusterRecord::loads(double most_s, double total_s, std::size_t nodes) {
  if (total_s <= 0) return;
  worst_sum_ += most_s * static_cast<double>(nodes) / total_s;
  ++ticks_;
}

ClusterRunResult ClusterRecord::result(double seconds) const {
  ClusterRunResult result = counted_;
  result.mean_s = latency_.mean_seconds();
  result.p50_s = to_seconds(latency_.percentile(0.5));
  result.p99_s = to_seconds(latency_.percentile(0.99));
  result.cold_percent = 100 * cold_ / std::max(1.0, static_cast<double>(result.calls));
  result.homes_away = places_ / std::max(1.0, routed_);
  result.worst_load = worst_sum_ / std::max(1.0, ticks_);
  result.back_s = seconds_until_back(seconds);
  return result;
}

double ClusterRecord::seconds_until_back(double seconds) const {
  if (by_second_.size() <= kLoss + 1) return 0;
  double before = 0;
  for (std::size_t s = kLoss - kBefore; s < kLoss; ++s) {
    before += to_seconds(by_second_[s].percentile(0.99)) / static_cast<double>(kBefore);
  }
  double back = 0;
  for (std::size_t s = kLoss; s < std::min(static_cast<std::size_t>(seconds), by_second_.size()); ++s) {
    if (to_seconds(by_second_[s].percentile(0.99)) > kBack * before) back = static_cast<double>(s + 1 - kLoss);
  }
  return back;
}

}  // namespace fairlead::sim
