// Turns: processes without MPS use a device one after the other. Who wants to compute draws a ticket; whoever leaves
// hands the turn to the oldest ticket, so the order is first come, first served. A dead holder or waiter is passed over.
//
// Example: A holds the turn, B draws ticket 1, C draws 2. A leaves: the holder becomes B. B is killed; C waits 50 ms in
// vain, finds B dead and takes the turn.
//
// Kernels of one process share its turn: several streams compute side by side until another process waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "softgpu/device/busy_meter.h"
#include "softgpu/device/clients.h"
#include "softgpu/device/control.h"
#include "softgpu/device/device_lock.h"

namespace softgpu {

class Turn {
 public:
  Turn(Control& control, DeviceLock& lock, const Clients& clients, Owner self)
      : control_(control), lock_(lock), clients_(clients), self_(self), meter_(control) {}

  // Blocks until this process may compute. Thread-safe; each enter() needs one leave().
  void enter();
  void leave();

 private:
  enum class State { kAway, kAcquiring, kHeld };
  static constexpr int kPatienceMs = 50;

  void acquire();
  void hand_over();
  bool others_wait() const { return control_.turn_waiters.load(std::memory_order_relaxed) != 0; }

  Control& control_;
  DeviceLock& lock_;
  const Clients& clients_;
  const Owner self_;
  BusyMeter meter_;

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kAway;  // guarded by mutex_
  unsigned running_ = 0;        // guarded by mutex_
};

}  // namespace softgpu
