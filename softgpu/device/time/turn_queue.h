// The processes that want one device's turn, in the order of their tickets, as shared memory keeps them. Who leaves hands the
// turn to the oldest ticket; a dead holder or waiter is passed over. A process may be killed at any instant: what it leaves is
// a ticket of a dead process, or a turn that tickets wait for, and the next to look mends both.
#pragma once

#include "softgpu/device/clients.h"
#include "softgpu/device/control.h"
#include "softgpu/device/device_lock.h"
#include "softgpu/device/stop_check.h"
#include "softgpu/device/time/busy_meter.h"
#include "softgpu/mutex.h"

namespace softgpu {

class TurnQueue {
 public:
  // For the process `self`. All must outlive this.
  TurnQueue(Control& control, DeviceLock& lock, const Clients& clients, Owner self)
      : control_(control), lock_(lock), clients_(clients), self_(self), meter_(control) {}

  // How long a waiter sleeps before it looks whether the holder is dead.
  static constexpr int kPatienceMs = 20;

  // Waits until this process has the turn; from then on the device's meter runs. False when `stop` ended the waiting; then the
  // process has no ticket. REQUIRES: it neither has the turn nor waits for it.
  bool acquire(const StopCheck& stop);
  // Hands the turn on at `now_ns`. REQUIRES: this process has it.
  void give_up(std::uint64_t now_ns);
  // Whether other processes have tickets. Thread-safe.
  bool others_wait() const { return control_.turn_waiters.load(std::memory_order_relaxed) != 0; }

 private:
  bool take_or_queue();
  bool wait(const StopCheck& stop);
  void withdraw();
  void hand_over() SOFTGPU_REQUIRES(lock_);

  Control& control_;
  DeviceLock& lock_;
  const Clients& clients_;
  const Owner self_;
  BusyMeter meter_;
};

}  // namespace softgpu
