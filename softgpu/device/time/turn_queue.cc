#include "softgpu/device/time/turn_queue.h"

#include "softgpu/device/futex.h"

namespace softgpu {

bool TurnQueue::acquire(const StopCheck& stop) {
  if (take_or_queue()) return true;
  if (!wait(stop)) return false;
  control_.tickets[self_.slot].store(0);  // whoever handed over may have been killed before he took it
  meter_.begin(monotonic_ns());
  return true;
}

// Takes the turn when nobody has it or waits for it, else draws a ticket.
bool TurnQueue::take_or_queue() {
  const LockGuard device(lock_);
  if (control_.turn_holder.load() == 0 && control_.turn_waiters.load() == 0) {
    control_.turn_holder.store(self_.pack());
    meter_.begin(monotonic_ns());
    return true;
  }
  control_.ticket_owners[self_.slot].store(self_.pack());
  control_.tickets[self_.slot].store(control_.next_ticket.fetch_add(1) + 1);
  control_.turn_waiters.fetch_add(1);
  return false;
}

bool TurnQueue::wait(const StopCheck& stop) {
  for (std::uint32_t holder = control_.turn_holder.load(); holder != self_.pack();
       holder = control_.turn_holder.load()) {
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
  }
  return true;
}

void TurnQueue::give_up(std::uint64_t now_ns) {
  meter_.end(now_ns);
  {
    const LockGuard device(lock_);
    hand_over();
  }
  if (control_.turn_holder.load() != 0) futex_wake_all(control_.turn_holder);
}

// Takes the ticket back; the turn may have come in the meantime.
void TurnQueue::withdraw() {
  {
    const LockGuard device(lock_);
    if (control_.tickets[self_.slot].exchange(0) != 0) control_.turn_waiters.fetch_sub(1);
    if (control_.turn_holder.load() == self_.pack()) hand_over();
  }
  futex_wake_all(control_.turn_holder);
}

// Makes the living process with the oldest ticket the holder, or nobody. Killed at any instant it leaves turn_waiters
// too high at worst, and every living waiter a ticket or the turn.
void TurnQueue::hand_over() {
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
