// Turns: processes without MPS use a device one after the other, first come, first served (turn_queue.h).
// A kernel that computes for longer than a slice while others wait gives the turn away and queues again (pause), so
// processes that never end share the device by slices.
//
// Example: A holds the turn, B draws ticket 1, C draws 2. After a slice of 2 ms A hands over to B and draws 3; B ends
// its kernel at once and C follows; when C has used its slice, A goes on. Had B been killed while it held the turn, C
// would have waited kPatience in vain, found B dead and taken the turn.
//
// Kernels of one process share its turn: several streams compute side by side until another process waits; then they
// pause together, and kernels that came meanwhile join them when the turn comes back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "softgpu/device/clients.h"
#include "softgpu/device/control.h"
#include "softgpu/device/device_lock.h"
#include "softgpu/device/stop_check.h"
#include "softgpu/device/time/turn_queue.h"
#include "softgpu/device/users.h"
#include "softgpu/mutex.h"

namespace softgpu {

class Turn {
 public:
  // `observe` is told when this process gets the turn and when it has given it away.
  Turn(Control& control, DeviceLock& lock, const Clients& clients, Owner self, std::uint64_t slice_ns,
       std::function<void(bool held)> observe = nullptr)
      : queue_(control, lock, clients, self),
        users_(control, clients),
        self_(self),
        slice_ns_(slice_ns),
        observe_(std::move(observe)) {}

  // Blocks until this process may compute; each true needs one leave(). False when `stop` ended the waiting.
  // Thread-safe, like all that follows.
  bool enter(const StopCheck& stop);
  void leave();

  // To be called often between enter() and leave(), by any thread that computes: returns at once unless the slice is
  // over and others wait, else when the turn has come back or `stop` ends the waiting.
  void pause(const StopCheck& stop);

  // How long kernels of this process have waited for the turn to come back so far.
  std::uint64_t away_ns() const { return away_ns_.load(); }

 private:
  enum class State { kAway, kAcquiring, kHeld };

  bool become_holder(const StopCheck& stop) SOFTGPU_REQUIRES(mutex_);
  void wait_for_change() SOFTGPU_REQUIRES(mutex_);
  void give_up() SOFTGPU_REQUIRES(mutex_);

  TurnQueue queue_;
  Users users_;
  const Owner self_;
  const std::uint64_t slice_ns_;
  const std::function<void(bool)> observe_;

  std::atomic<std::uint64_t> slice_end_ns_{0};  // 0: this process does not hold the turn
  std::atomic<std::uint64_t> away_ns_{0};

  Mutex mutex_;
  ConditionVariable changed_;
  State state_ SOFTGPU_GUARDED_BY(mutex_) = State::kAway;
  unsigned running_ SOFTGPU_GUARDED_BY(mutex_) = 0;  // kernels between enter() and leave()
  // When the turn was given away with kernels running, 0: it was not.
  std::uint64_t away_since_ns_ SOFTGPU_GUARDED_BY(mutex_) = 0;
  std::uint64_t hold_count_ SOFTGPU_GUARDED_BY(mutex_) = 0;  // how often the turn came
};

}  // namespace softgpu
