#include "decide/pipeline/keep_alive.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fairlead {

std::string_view keep_alive_name(KeepAliveState state) {
  constexpr std::string_view kNames[] = {"cold", "warm", "time sharing", "exclusive hot"};
  return kNames[static_cast<std::size_t>(state)];
}

bool may_become(KeepAliveState from, KeepAliveState to) {
  // Columns: cold, warm, time sharing, exclusive hot.
  constexpr bool kLegal[4][4] = {{true, false, true, false},  // cold
                                 {true, true, true, false},   // warm
                                 {true, true, true, true},    // time sharing
                                 {true, true, true, true}};   // exclusive hot
  return kLegal[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

KeepAliveState KeepAlive::become(KeepAliveState state) {
  FL_CHECK(may_become(state_, state), "{} does not become {}", keep_alive_name(state_), keep_alive_name(state));
  if (state != state_) below_since_.reset();
  return state_ = state;
}

KeepAliveState KeepAlive::on_request(Instant now) {
  last_request_ = now;
  const bool is_away = state_ == KeepAliveState::kCold || state_ == KeepAliveState::kWarm;
  return is_away ? become(KeepAliveState::kTimeSharing) : state_;
}

KeepAliveState KeepAlive::on_utilisation(Instant now, double utilisation) {
  if (state_ == KeepAliveState::kTimeSharing && utilisation > terms_.hot_above)
    return become(KeepAliveState::kExclusiveHot);
  if (state_ != KeepAliveState::kExclusiveHot) return state_;
  if (utilisation > terms_.hot_above) {
    below_since_.reset();
  } else if (!below_since_) {
    below_since_ = now;
  } else if (now - *below_since_ >= terms_.hold) {
    return become(KeepAliveState::kTimeSharing);
  }
  return state_;
}

KeepAliveState KeepAlive::on_evicted(Instant) {
  return state_ == KeepAliveState::kTimeSharing ? become(KeepAliveState::kWarm) : state_;
}

KeepAliveState KeepAlive::on_lost(Instant, bool memory_is_in_host) {
  if (state_ == KeepAliveState::kCold || (state_ == KeepAliveState::kWarm && memory_is_in_host)) return state_;
  return become(memory_is_in_host ? KeepAliveState::kWarm : KeepAliveState::kCold);
}

KeepAliveState KeepAlive::wake(Instant now) {
  if (state_ != KeepAliveState::kCold && now - last_request_ >= terms_.cold_after) return become(KeepAliveState::kCold);
  return state_;
}

std::optional<Instant> KeepAlive::next_wakeup() const {
  if (state_ == KeepAliveState::kCold) return std::nullopt;
  return last_request_ + terms_.cold_after;
}

void SharedSlices::add(SharedSliceId slice) {
  FL_CHECK(slices_.try_emplace(slice).second, "slice {} is shared already", slice.value());
}

bool SharedSlices::remove(SharedSliceId slice) {
  const auto at = slices_.find(slice);
  if (at == slices_.end() || at->second.is_busy) return false;
  slices_.erase(at);
  return true;
}

// What is lost each second that its resident is not there; who holds nobody is worth nothing.
double SharedSlices::worth_of(Instant now, const Slice& slice) const {
  if (!slice.resident) return -1;
  const auto use = uses_.find(*slice.resident);
  const Duration gap = use == uses_.end() ? Duration(0) : std::max(use->second.gap, now - use->second.last);
  return to_seconds(slice.comes_back) / std::max(1e-3, to_seconds(gap));
}

void SharedSlices::note_use(Instant now, FlowId function) {
  if (uses_.size() >= kMostKnown && !uses_.contains(function)) {
    uses_.erase(std::min_element(uses_.begin(), uses_.end(),
                                 [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
  }
  const auto [at, is_new] = uses_.try_emplace(function, Use{.last = now});
  if (is_new) return;
  const Duration gap = now - at->second.last;
  at->second.gap = at->second.gap == Duration(0) ? gap : (3 * at->second.gap + gap) / 4;
  at->second.last = now;
}

std::optional<SharedSlices::Placement> SharedSlices::place(Instant now, FlowId function, Duration comes_back,
                                                           const std::set<SharedSliceId>& fits) {
  Slice* victim = nullptr;
  SharedSliceId victim_id;
  for (auto& [id, one] : slices_) {
    if (one.resident == function) {  // at most one instance: it waits for its own slice
      if (one.is_busy) return std::nullopt;
      note_use(now, function);
      one.is_busy = true;
      return Placement{.slice = id, .evicts = {}, .must_load = false};
    }
  }
  for (auto& [id, one] : slices_) {
    if (one.is_busy || !fits.contains(id)) continue;
    const bool may_leave = !one.resident || terms_.rule == EvictionRule::kLru || now - one.came >= terms_.least_stay;
    if (!may_leave) continue;
    const bool better = victim == nullptr ||
                        (terms_.rule == EvictionRule::kLru && one.resident.has_value() == victim->resident.has_value()
                             ? one.used < victim->used
                             : worth_of(now, one) < worth_of(now, *victim));
    if (!better) continue;
    victim = &one;
    victim_id = id;
  }
  if (victim == nullptr) return std::nullopt;
  note_use(now, function);
  const Placement placed{.slice = victim_id, .evicts = victim->resident, .must_load = true};
  *victim = {.resident = function, .is_busy = true, .came = now, .used = now, .comes_back = comes_back};
  return placed;
}

void SharedSlices::finished(Instant now, SharedSliceId slice, Duration busy) {
  Slice& one = slices_.at(slice);
  FL_CHECK(one.is_busy, "slice {} runs nothing", slice.value());
  one.is_busy = false;
  one.used = now;
  busy_ += busy;
}

std::optional<FlowId> SharedSlices::resident(SharedSliceId slice) const {
  const auto at = slices_.find(slice);
  return at == slices_.end() ? std::nullopt : at->second.resident;
}

void SharedSlices::forget(FlowId function) {
  uses_.erase(function);
  for (auto& [id, one] : slices_) {
    if (one.resident != function) continue;
    FL_CHECK(!one.is_busy, "slice {} runs function {}", id.value(), function.value());
    one.resident.reset();
  }
}

void SharedSlices::note_answer(bool in_time) {
  ++answers_;
  if (!in_time) ++missed_;
}

int SharedSlices::wanted_change(Duration passed) {
  const auto answers = std::exchange(answers_, 0), missed = std::exchange(missed_, 0);
  const double busy = to_seconds(std::exchange(busy_, Duration(0)));
  const double utilisation =
      busy / std::max(1e-9, to_seconds(passed) * static_cast<double>(std::max<std::size_t>(1, slices_.size())));
  if (answers > 0 && static_cast<double>(missed) > terms_.grow_missed * static_cast<double>(answers)) return 1;
  return utilisation < terms_.shrink_below && !slices_.empty() ? -1 : 0;
}

}  // namespace fairlead
