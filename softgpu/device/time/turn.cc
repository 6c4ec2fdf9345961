#include "softgpu/device/time/turn.h"

#include <chrono>

#include "softgpu/mutex.h"

namespace softgpu {

bool Turn::enter(const StopCheck& stop) {
  const LockGuard guard(mutex_);
  // Who comes while others wait may not prolong this hold of the turn, but joins the next.
  const std::uint64_t seen = hold_count_;
  while (state_ != State::kHeld || (queue_.others_wait() && hold_count_ == seen)) {
    if (stop()) return false;
    if (state_ == State::kAway) {
      if (!become_holder(stop)) return false;
    } else {
      wait_for_change();
    }
  }
  ++running_;
  return true;
}

void Turn::leave() {
  const LockGuard guard(mutex_);
  if (--running_ != 0) return;
  away_since_ns_ = 0;
  if (state_ == State::kHeld) give_up();
}

void Turn::pause(const StopCheck& stop) {
  const std::uint64_t slice_end = slice_end_ns_.load();
  if (slice_end != 0 && (!queue_.others_wait() || monotonic_ns() < slice_end)) return;
  const LockGuard guard(mutex_);
  if (state_ == State::kHeld && queue_.others_wait() && monotonic_ns() >= slice_end_ns_.load()) give_up();
  while (state_ != State::kHeld) {
    if (stop()) return;
    if (state_ == State::kAcquiring) {
      wait_for_change();
      continue;
    }
    if (!become_holder(stop)) return;
  }
}

// Goes from kAway to kHeld, or back to kAway and false; mutex_ is let go of meanwhile. REQUIRES: state_ is kAway.
bool Turn::become_holder(const StopCheck& stop) {
  state_ = State::kAcquiring;
  mutex_.unlock();
  const bool acquired = queue_.acquire(stop);
  mutex_.lock();
  state_ = acquired ? State::kHeld : State::kAway;
  if (acquired) {
    ++hold_count_;
    const std::uint64_t now = monotonic_ns();
    users_.begin(self_, now);
    if (away_since_ns_ != 0) away_ns_.fetch_add(now - away_since_ns_);
    away_since_ns_ = 0;
    slice_end_ns_.store(now + slice_ns_);  // last: who sees the turn held knows how long it was away
    if (observe_) observe_(true);
  }
  changed_.notify_all();
  return acquired;
}

void Turn::wait_for_change() {
  changed_.wait_for(mutex_, std::chrono::milliseconds(TurnQueue::kPatienceMs));
}

// REQUIRES: state_ is kHeld.
void Turn::give_up() {
  if (observe_) observe_(false);
  const std::uint64_t now = monotonic_ns();
  if (running_ != 0) away_since_ns_ = now;
  users_.end(self_, now);
  slice_end_ns_.store(0);
  queue_.give_up(now);
  state_ = State::kAway;
  changed_.notify_all();
}

}  // namespace softgpu
