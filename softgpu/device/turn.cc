#include "softgpu/device/turn.h"

#include "softgpu/device/futex.h"

namespace softgpu {

void Turn::enter() {
  std::unique_lock guard(mutex_);
  changed_.wait(guard, [&] { return state_ == State::kAway || (state_ == State::kHeld && !others_wait()); });
  if (state_ == State::kHeld) {
    ++running_;
    return;
  }
  state_ = State::kAcquiring;
  guard.unlock();
  acquire();
  guard.lock();
  state_ = State::kHeld;
  running_ = 1;
  changed_.notify_all();
}

void Turn::leave() {
  const std::lock_guard guard(mutex_);
  if (--running_ != 0) return;
  meter_.end(monotonic_ns());
  {
    const std::lock_guard device(lock_);
    hand_over();
  }
  if (control_.turn_holder.load() != 0) futex_wake_all(control_.turn_holder);
  state_ = State::kAway;
  changed_.notify_all();
}

void Turn::acquire() {
  const std::uint32_t me = self_.pack();
  {
    const std::lock_guard device(lock_);
    if (control_.turn_holder.load() == 0 && control_.turn_waiters.load() == 0) {
      control_.turn_holder.store(me);
      meter_.begin(monotonic_ns());
      return;
    }
    control_.ticket_owners[self_.slot].store(me);
    control_.tickets[self_.slot].store(control_.next_ticket.fetch_add(1) + 1);
    control_.turn_waiters.fetch_add(1);
  }
  std::uint32_t holder = control_.turn_holder.load();
  while (holder != me) {
    // Nobody may hold the turn although tickets wait: its last holder died in the middle of a hand-over.
    if (holder == 0 || !clients_.alive(Owner::unpack(holder))) {
      const std::lock_guard device(lock_);
      if (control_.turn_holder.load() == holder) hand_over();
      futex_wake_all(control_.turn_holder);
    } else {
      futex_wait(control_.turn_holder, holder, kPatienceMs);
    }
    holder = control_.turn_holder.load();
  }
  meter_.begin(monotonic_ns());
}

// Makes the living process with the oldest ticket the holder, or nobody. REQUIRES: the device lock.
void Turn::hand_over() {
  while (true) {
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
      control_.turn_holder.store(0);
      return;
    }
    const std::uint32_t owner = control_.ticket_owners[oldest].load();
    const bool alive = clients_.alive(Owner::unpack(owner));
    control_.turn_waiters.store(waiting - 1);
    if (alive) control_.turn_holder.store(owner);
    control_.tickets[oldest].store(0);
    if (alive) return;
  }
}

}  // namespace softgpu
