// The lock of a device's control segment, shared by processes that may die while they hold it.
//
// The word names its holder (slot and generation). Who waits asks now and then, after 1 ms first and every kPatienceMs
// at the latest, whether the holder lives, and takes the lock over if it does not. Everything the lock guards is valid after every single store, so the new holder
// has nothing to repair. A POSIX robust mutex would not do: it names threads by an id that two pid namespaces share.
//
// Cost when nobody else wants it: one compare-and-swap, one exchange.
#pragma once

#include <atomic>
#include <cstdint>

#include "softgpu/device/clients.h"
#include "softgpu/device/owner.h"
#include "softgpu/mutex.h"
#include "softgpu/thread_annotations.h"

namespace softgpu {

class SOFTGPU_CAPABILITY("mutex") DeviceLock {
 public:
  DeviceLock(std::atomic<std::uint32_t>& word, const Clients& clients, Owner self)
      : word_(word), clients_(clients), self_(self) {}

  // For LockGuard. Thread-safe, not recursive.
  void lock() SOFTGPU_ACQUIRE();
  void unlock() SOFTGPU_RELEASE();

 private:
  static constexpr std::uint32_t kContended = 1U << 31;
  static constexpr int kPatienceMs = 16;

  std::atomic<std::uint32_t>& word_;
  const Clients& clients_;
  const Owner self_;
};

}  // namespace softgpu
