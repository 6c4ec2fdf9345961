#include "softgpu/device/device_lock.h"

#include <algorithm>

#include "softgpu/device/futex.h"

namespace softgpu {

void DeviceLock::lock() {
  std::uint32_t seen = 0;
  if (word_.compare_exchange_strong(seen, self_.pack(), std::memory_order_acquire)) return;
  int patience_ms = 1;
  while (true) {
    if (seen == 0) {
      // Others may sleep: keep the mark, so that unlock() wakes them.
      if (word_.compare_exchange_strong(seen, self_.pack() | kContended, std::memory_order_acquire)) return;
      continue;
    }
    const std::uint32_t marked = seen | kContended;
    if (seen != marked && !word_.compare_exchange_strong(seen, marked)) continue;
    futex_wait(word_, marked, patience_ms);
    patience_ms = std::min(2 * patience_ms, kPatienceMs);
    seen = word_.load();
    if (seen == marked && !clients_.alive(Owner::unpack(seen & ~kContended)) &&
        word_.compare_exchange_strong(seen, self_.pack() | kContended, std::memory_order_acquire)) {
      return;
    }
  }
}

void DeviceLock::unlock() {
  if ((word_.exchange(0, std::memory_order_release) & kContended) != 0) futex_wake_all(word_);
}

}  // namespace softgpu
