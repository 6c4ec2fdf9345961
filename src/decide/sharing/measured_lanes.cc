#include "decide/sharing/measured_lanes.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fairlead {

MeasuredLanes::MeasuredLanes(const Options& options)
    : options_(options), lanes_(options.least), lane_(options.most + 1) {
  FL_CHECK(options.least >= 1 && options.least <= options.most, "least={} most={}", options.least, options.most);
}

// The first few samples count alike, later ones by kNewest.
void MeasuredLanes::Mean::add(double sample) {
  ++samples;
  value += std::max(kNewest, 1.0 / samples) * (sample - value);
}

void MeasuredLanes::pass_time(Instant now) {
  const auto passed = static_cast<std::int64_t>((now - updated_).count());
  area_ += passed * static_cast<std::int64_t>(calls_.size());
  updated_ = now;
}

void MeasuredLanes::begin(Instant now, InvocationId call, FlowId task) {
  pass_time(now);
  const bool is_new = calls_.try_emplace(call, {.task = task, .began = now, .area = area_}).second;
  FL_CHECK(is_new, "call {} computes already", call.value());
}

void MeasuredLanes::end(Instant now, InvocationId id) {
  const Call* found = calls_.find(id);
  if (found == nullptr) return;
  pass_time(now);
  const Call call = *found;
  calls_.erase(id);
  const Duration took = now - call.began;
  if (took <= Duration(0)) return;
  const double met = static_cast<double>(area_ - call.area) / static_cast<double>(took.count());
  const double level = std::round(met);
  const bool is_crisp = std::abs(met - level) <= kCrisp;
  if (is_crisp && level >= 1 && level <= static_cast<double>(options_.most)) {
    record(now, call.task, static_cast<std::size_t>(level), took);
  }
  decide(now);
}

void MeasuredLanes::abandon(Instant now, InvocationId call) {
  pass_time(now);
  calls_.erase(call);
}

void MeasuredLanes::record(Instant now, FlowId task, std::size_t level, Duration took) {
  std::vector<Mean>& times = times_[task];
  times.resize(options_.most + 1);
  const auto sample = static_cast<double>(took.count());
  Lane& lane = lane_[level];
  if (times[level].samples > 0) lane.in_use = std::min(lane.in_use + 1, kEnough);
  times[level].add(sample);
  lane.judged = now;
  if (times[level - 1].samples > 0) lane.stretch.add(sample / times[level - 1].value);
}

double MeasuredLanes::added(std::size_t lane) const {
  return (lane_[lane].stretch.value - 1) * static_cast<double>(lane - 1);
}

void MeasuredLanes::decide(Instant now) {
  lanes_ = options_.least;
  while (lanes_ < options_.most) {
    Lane& next = lane_[lanes_ + 1];
    const bool refused = is_known(lanes_ + 1) && added(lanes_ + 1) > kMostAdded;
    if (refused && now - next.judged < kRetry) return;
    if (refused) next = Lane();
    if (is_known(lanes_ + 1)) {
      ++lanes_;
      continue;
    }
    if (lane_[lanes_].in_use >= kEnough) ++lanes_;  // to find out
    return;
  }
}

}  // namespace fairlead
