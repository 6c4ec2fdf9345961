#include "softgpu/device/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace softgpu {

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, int timeout_ms) {
  const timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace softgpu
