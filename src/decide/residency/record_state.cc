#include "decide/residency/record_state.h"

#include <fmt/core.h>

#include "base/check.h"

namespace fairlead {

using enum RecordEvent;

// ---- what goes together

bool RecordState::is_legal() const {
  const bool doubted = way_back_ == WayBack::kDoubted;
  // What has not reported was never moved.
  if (!reported() && (way_back_ != WayBack::kOpen || unmovable_ || prefetched_ || was_served())) return false;
  // Only for what idles does it matter who waits or what comes ahead of use.
  if (!idle() && (waiter_ != Waiter::kNone || prefetched_)) return false;
  // What starts was never asked to leave, and nothing comes of what stops.
  if (starts() && (motion_ == Motion::kLeaving || unmovable_)) return false;
  if (stopping() && (moving() || way_back_ != WayBack::kOpen || unmovable_)) return false;
  // A move begins only where nothing is against it, and nobody doubts the books while they change.
  if (motion_ == Motion::kReturning && way_back_ != WayBack::kOpen) return false;
  if (motion_ == Motion::kLeaving && (doubted || unmovable_ || prefetched_)) return false;
  // While it idles the doubt is that of a thread that waits. If it is of the run before, no more than that has happened since.
  return !(idle() && doubted) || wants() || (waiter_ == Waiter::kNone && !prefetched_);
}

// ---- what becomes of it

bool RecordState::lives_on(RecordEvent event) {
  const bool from_here = event == kReady ? starts() : event == kChosen ? idle() : activity_ == Activity::kRunning;
  if (!from_here) return false;
  switch (event) {
    case kRested: activity_ = Activity::kAnswered; break;
    case kUnused: activity_ = Activity::kIdle; break;
    default: activity_ = Activity::kRunning;
  }
  if (event != kChosen) return true;
  unmovable_ = prefetched_ = false;
  waiter_ = Waiter::kNone;
  return true;
}

// Nothing moves it any more and nobody waits for it; what was known of that is forgotten.
bool RecordState::stops() {
  if (stopping()) return false;
  const bool has_reported = reported();
  *this = RecordState();
  activity_ = Activity::kStopping;
  motion_ = has_reported ? Motion::kStill : Motion::kUnreported;
  return true;
}

bool RecordState::says(RecordEvent event) {
  if (stopping()) return false;
  if (event == kSatisfied) {
    if (!wants() || moving() || way_back_ == WayBack::kDoubted) return false;
    waiter_ = waiter_ == Waiter::kWaitsAgain ? Waiter::kServed : Waiter::kNone;
    return true;
  }
  if (event == kReported) {
    if (activity_ == Activity::kAnswered) activity_ = Activity::kIdle;
    if (motion_ == Motion::kUnreported) motion_ = Motion::kStill;
    if (way_back_ == WayBack::kFailed) way_back_ = WayBack::kOpen;
    return true;
  }
  way_back_ = event == kDoubts && motion_ == Motion::kStill ? WayBack::kDoubted : WayBack::kOpen;
  if (idle()) waiter_ = was_served() ? Waiter::kWaitsAgain : Waiter::kWaits;
  return true;
}

// ---- moves

bool RecordState::begins_move(RecordEvent event) {
  if (motion_ != Motion::kStill || stopping()) return false;
  if (event == kLeaves) {
    if (!idle() || unmovable_) return false;
    motion_ = Motion::kLeaving;
    if (way_back_ == WayBack::kDoubted) way_back_ = WayBack::kOpen;
    prefetched_ = false;
    return true;
  }
  if (way_back_ == WayBack::kFailed || (event == kReturnsAhead && !idle())) return false;
  motion_ = Motion::kReturning;
  way_back_ = WayBack::kOpen;
  if (event == kReturnsAhead) prefetched_ = true;
  return true;
}

bool RecordState::ends_move(RecordEvent event) {
  const bool left = event == kLeft || event == kNotLeft;
  if (motion_ != (left ? Motion::kLeaving : Motion::kReturning)) return false;
  motion_ = Motion::kStill;
  switch (event) {
    case kNotLeft: unmovable_ = true; break;
    case kReturned: waiter_ = wants() ? Waiter::kServed : Waiter::kNone; break;
    case kFull: way_back_ = WayBack::kFull; break;
    case kFailed: way_back_ = WayBack::kFailed; break;
    default: break;
  }
  return true;
}

bool RecordState::take(RecordEvent event) {
  switch (event) {
    case kReady:
    case kChosen:
    case kRested:
    case kUnused: return lives_on(event);
    case kStopped: return stops();
    case kReported:
    case kWants:
    case kDoubts:
    case kSatisfied: return says(event);
    case kLeaves:
    case kReturns:
    case kReturnsAhead: return begins_move(event);
    default: return ends_move(event);
  }
}

std::optional<RecordState> step(RecordState state, RecordEvent event) {
  if (!state.take(event)) return std::nullopt;
  FL_CHECK(state.is_legal(), "{} by {}", state.text(), record_event_name(event));
  return state;
}

// ---- names

std::string RecordState::text() const {
  constexpr const char* kActivities[] = {"starting", "running", "answered", "idle", "stopping"};
  constexpr const char* kMotions[] = {"unreported", "still", "leaving", "returning"};
  constexpr const char* kWaysBack[] = {"", ", doubted", ", full", ", failed"};
  constexpr const char* kWaiters[] = {"", ", waits", ", served", ", waits again"};
  return fmt::format("{}, {}{}{}{}{}", kActivities[static_cast<int>(activity_)], kMotions[static_cast<int>(motion_)],
                     kWaysBack[static_cast<int>(way_back_)], kWaiters[static_cast<int>(waiter_)],
                     unmovable_ ? ", unmovable" : "", prefetched_ ? ", prefetched" : "");
}

const char* record_event_name(RecordEvent event) {
  constexpr const char* kNames[kRecordEvents] = {"ready", "chosen",   "rested",    "unused", "stopped", "reported",
                                                 "wants", "doubts",   "satisfied", "leaves", "returns", "returns ahead",
                                                 "left",  "not left", "returned",  "full",   "failed",  "cut short"};
  return kNames[static_cast<int>(event)];
}

}  // namespace fairlead
