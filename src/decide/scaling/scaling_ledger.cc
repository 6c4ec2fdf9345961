#include "decide/scaling/scaling_ledger.h"

#include <algorithm>

namespace fairlead {

// Requests come in order of time, so a second that is not there is the newest; where the clock was set back the newest takes it.
LedgerSecond& ScalingLedger::second(std::int64_t now_ms) {
  const std::int64_t at_s = now_ms / 1000;
  if (totals_.since_ms == 0) totals_.since_ms = now_ms;
  if (seconds_.empty() || seconds_.back().at_s < at_s) {
    seconds_.push_back({.at_s = at_s, .seats = there_.seats, .ready = there_.ready, .parked = there_.parked});
    if (seconds_.size() > kMostSeconds) seconds_.pop_front();
  }
  return seconds_.back();
}

double ScalingLedger::held_since(std::int64_t now_ms) const {
  return static_cast<double>(std::max<std::int64_t>(0, now_ms - there_since_ms_)) / 1000 * there_.seats * area_;
}

void ScalingLedger::set_terms(std::int64_t now_ms, double area, double least_s) {
  totals_.held_s += held_since(now_ms);
  there_since_ms_ = now_ms;
  area_ = area;
  least_s_ = least_s;
}

void ScalingLedger::arrived(std::int64_t now_ms) {
  ++second(now_ms).arrived;
  ++totals_.arrived;
  totals_.bound_s += least_s_;
}

void ScalingLedger::answered(std::int64_t arrived_ms, bool late) {
  ++totals_.answered;
  if (late) ++totals_.late;
  const std::int64_t at_s = arrived_ms / 1000;
  const auto found = std::lower_bound(seconds_.begin(), seconds_.end(), at_s,
                                      [](const LedgerSecond& one, std::int64_t wanted) { return one.at_s < wanted; });
  if (found == seconds_.end() || found->at_s != at_s) return;  // so long ago that it is forgotten
  ++found->answered;
  if (late) ++found->late;
}

void ScalingLedger::has(std::int64_t now_ms, const LedgerInstances& instances) {
  totals_.held_s += held_since(now_ms);
  there_ = instances;
  there_since_ms_ = now_ms;
  if (instances.seats + instances.ready + instances.parked == 0) return;
  LedgerSecond& now = second(now_ms);
  now.seats = std::max(now.seats, instances.seats);
  now.ready = std::max(now.ready, instances.ready);
  now.parked = std::max(now.parked, instances.parked);
}

LedgerTotals ScalingLedger::totals(std::int64_t now_ms) const {
  LedgerTotals totals = totals_;
  totals.held_s += held_since(now_ms);
  return totals;
}

}  // namespace fairlead
