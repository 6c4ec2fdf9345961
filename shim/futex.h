// Waiting for a word to change, and waking those who wait. The word may be in memory shared with another process.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace fairlead::shim {

// Returns when woken, when the word is not `seen`, or after `limit_ms`; the caller looks again.
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen, long limit_ms) {
  const timespec limit = {limit_ms / 1000, limit_ms % 1000 * 1000000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

inline void futex_wake_all(const std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace fairlead::shim
