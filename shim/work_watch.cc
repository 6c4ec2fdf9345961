#include "shim/work_watch.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <atomic>

#include "shim/clock.h"
#include "shim/driver.h"
#include "shim/futex.h"
#include "shim/gate.h"
#include "shim/gpu_time.h"
#include "shim/mover.h"
#include "shim/place.h"

namespace fairlead::shim {
namespace {

constexpr std::uint64_t kShortestNs = 100'000;
constexpr std::uint64_t kLongestNs = 1'000'000;
constexpr std::uint64_t kLooksPerAge = 16;
// Idle for so long, the thread sleeps until it is woken: not between two calls of a busy function.
constexpr std::uint64_t kLingerNs = 10'000'000;
constexpr long kAsleepMs = 3'600'000;

enum State : std::uint32_t { kNoThread, kAwake, kAsleep };
constinit std::atomic<std::uint32_t> state{kNoThread};

bool anything_busy() {
  return gpu_time_detail::busy_contexts.load() != 0;
}

void nap(std::uint64_t ns) {
  const timespec pause = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  ::nanosleep(&pause, nullptr);
}

// Whoever gives it something to watch says so after it has become true.
void sleep_until_woken() {
  state.store(kAsleep);
  while (!anything_busy() && state.load() == kAsleep && look_at_place(now_ns()) == kNoPlace) {
    futex_wait(state, kAsleep, kAsleepMs);
  }
  state.store(kAwake);
}

void* watch_for_ever(void*) {
  const Bypass own_work;
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  // What another thread captures is not disturbed by our queries.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  FAIRLEAD_REAL(cuThreadExchangeStreamCaptureMode)(&mode);
  for (std::uint64_t seen_busy = now_ns();;) {
    const bool is_busy = anything_busy();
    const std::uint64_t pause = is_busy ? look_at_work() : kLongestNs;
    const std::uint64_t place_pause = look_at_place(now_ns());
    if (is_busy || place_pause != kNoPlace) {
      nap(std::min(pause, place_pause));
      seen_busy = now_ns();
    } else if (!has_places() && now_ns() - seen_busy < kLingerNs) {
      nap(kLongestNs);
    } else {
      sleep_until_woken();
      seen_busy = now_ns();
    }
  }
}

}  // namespace

void watch_work() {
  std::uint32_t seen = kNoThread;
  if (state.compare_exchange_strong(seen, kAwake)) {
    if (!start_thread("fl-time", watch_for_ever)) state.store(kNoThread);
  } else if (seen == kAsleep && state.exchange(kAwake) == kAsleep) {
    futex_wake_all(state);
  }
}

std::uint64_t watch_period_ns(std::uint64_t age_ns) {
  return std::clamp(age_ns / kLooksPerAge, kShortestNs, kLongestNs);
}

void forget_watch() {
  state.store(kNoThread);
}

}  // namespace fairlead::shim
