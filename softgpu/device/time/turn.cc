#include "softgpu/device/time/turn.h"

#include <chrono>

#include "softgpu/device/futex.h"
#include "softgpu/mutex.h"

namespace softgpu {

bool Turn::enter(const StopCheck& stop) {
  const LockGuard guard(mutex_);
  // Who comes while others wait may not prolong this hold of the turn, but joins the next.
  const std::uint64_t seen = hold_count_;
  while (state_ != State::kHeld || (others_wait() && hold_count_ == seen)) {
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
  if (slice_end != 0 && (!others_wait() || monotonic_ns() < slice_end)) return;
  const LockGuard guard(mutex_);
  if (state_ == State::kHeld && others_wait() && monotonic_ns() >= slice_end_ns_.load()) give_up();
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
  const bool acquired = acquire(stop);
  mutex_.lock();
  state_ = acquired ? State::kHeld : State::kAway;
  if (acquired) {
    ++hold_count_;
    const std::uint64_t now = monotonic_ns();
    Users(control_, clients_).begin(self_, now);
    if (away_since_ns_ != 0) away_ns_.fetch_add(now - away_since_ns_);
    away_since_ns_ = 0;
    slice_end_ns_.store(now + slice_ns_);  // last: who sees the turn held knows how long it was away
    if (observe_) observe_(true);
  }
  changed_.notify_all();
  return acquired;
}

void Turn::wait_for_change() {
  changed_.wait_for(mutex_, std::chrono::milliseconds(kPatienceMs));
}

// REQUIRES: state_ is kHeld.
void Turn::give_up() {
  if (observe_) observe_(false);
  const std::uint64_t now = monotonic_ns();
  if (running_ != 0) away_since_ns_ = now;
  Users(control_, clients_).end(self_, now);
  meter_.end(now);
  slice_end_ns_.store(0);
  {
    const LockGuard device(lock_);
    hand_over();
  }
  if (control_.turn_holder.load() != 0) futex_wake_all(control_.turn_holder);
  state_ = State::kAway;
  changed_.notify_all();
}

bool Turn::acquire(const StopCheck& stop) {
  const std::uint32_t me = self_.pack();
  {
    const LockGuard device(lock_);
    if (control_.turn_holder.load() == 0 && control_.turn_waiters.load() == 0) {
      control_.turn_holder.store(me);
      meter_.begin(monotonic_ns());
      return true;
    }
    control_.ticket_owners[self_.slot].store(me);
    control_.tickets[self_.slot].store(control_.next_ticket.fetch_add(1) + 1);
    control_.turn_waiters.fetch_add(1);
  }
  std::uint32_t holder = control_.turn_holder.load();
  while (holder != me) {
    if (stop()) {
      withdraw();
      return false;
    }
    // Nobody may hold the turn although tickets wait: its last holder died in the middle of a hand-over.
    if (holder == 0 || !clients_.alive(Owner::unpack(holder))) {
      const LockGuard device(lock_);
      if (control_.turn_holder.load() == holder) hand_over();
      futex_wake_all(control_.turn_holder);
    } else {
      futex_wait(control_.turn_holder, holder, kPatienceMs);
    }
    holder = control_.turn_holder.load();
  }
  control_.tickets[self_.slot].store(0);  // whoever handed over may have been killed before he took it
  meter_.begin(monotonic_ns());
  return true;
}

// Takes the ticket back; the turn may have come in the meantime.
void Turn::withdraw() {
  {
    const LockGuard device(lock_);
    if (control_.tickets[self_.slot].exchange(0) != 0) control_.turn_waiters.fetch_sub(1);
    if (control_.turn_holder.load() == self_.pack()) hand_over();
  }
  futex_wake_all(control_.turn_holder);
}

// Makes the living process with the oldest ticket the holder, or nobody. Killed at any instant it leaves turn_waiters
// too high at worst, and every living waiter a ticket or the turn.
void Turn::hand_over() {
  while (control_.turn_waiters.load() != 0) {
    std::uint32_t waiting = 0;
    unsigned oldest = kMaxClients;
    for (unsigned slot = 0; slot < kMaxClients; ++slot) {
      const std::uint64_t ticket = control_.tickets[slot].load(std::memory_order_relaxed);
      if (ticket == 0) continue;
      ++waiting;
      if (oldest == kMaxClients || ticket < control_.tickets[oldest].load(std::memory_order_relaxed)) oldest = slot;
    }
    if (oldest == kMaxClients) {
      control_.turn_waiters.store(0);
      break;
    }
    const std::uint32_t owner = control_.ticket_owners[oldest].load();
    const bool alive = clients_.alive(Owner::unpack(owner));
    if (alive) control_.turn_holder.store(owner);
    control_.tickets[oldest].store(0);
    control_.turn_waiters.store(waiting - 1);
    if (alive) return;
  }
  control_.turn_holder.store(0);
}

}  // namespace softgpu
