#include "sim/cluster/tenant_gaps.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fairlead::sim {
namespace {

constexpr Duration kWindow = std::chrono::seconds(30);

}  // namespace

TenantGaps::TenantGaps(std::size_t tenants, Instant measured_from)
    : measured_from_(measured_from),
      window_end_(measured_from + kWindow),
      served_s_(tenants),
      before_s_(tenants),
      waited_all_(tenants, true) {}

void TenantGaps::observe(Instant now, std::vector<double> served_s, const std::vector<bool>& waits) {
  for (std::size_t t = 0; t < waits.size(); ++t) waited_all_[t] = waited_all_[t] && waits[t];
  served_s_ = std::move(served_s);
  if (now <= measured_from_) before_s_ = served_s_;
  if (now >= window_end_) end_window();
}

void TenantGaps::end_window() {
  double most = 0, least = std::numeric_limits<double>::max(), sum = 0, compared = 0;
  for (std::size_t t = 0; t < served_s_.size(); ++t) {
    if (!waited_all_[t]) continue;
    const double got = served_s_[t] - before_s_[t];
    most = std::max(most, got);
    least = std::min(least, got);
    sum += got;
    ++compared;
  }
  if (compared >= 2) {
    worst_s_ = std::max(worst_s_, most - least);
    worst_part_ = std::max(worst_part_, (most - least) * compared / sum);
    sum_s_ += most - least;
    ++windows_;
  }
  before_s_ = served_s_;
  waited_all_.assign(served_s_.size(), true);
  window_end_ += kWindow;
}

void TenantGaps::add_to(ClusterRunResult& result) const {
  result.worst_gap_s = worst_s_;
  result.worst_gap_part = worst_part_;
  result.mean_gap_s = sum_s_ / std::max(1.0, windows_);
}

}  // namespace fairlead::sim
