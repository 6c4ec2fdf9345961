// When the spawner that ended is replaced: at once where it had served for a while, else later and later, so that one that
// cannot live costs little. No clock.
//
// Example: it dies after an hour: 0 s. The new one dies at once: 0.1 s, 0.2 s, 0.4 s ... 10 s. One that serves for a second begins
// the series anew.
//
// Threads: not thread-safe.
#pragma once

#include <algorithm>
#include <optional>

#include "base/units.h"

namespace fairlead {

class SpawnerRestarts {
 public:
  static constexpr Duration kHealthy = std::chrono::seconds(1);
  static constexpr Duration kFirstWait = std::chrono::milliseconds(100);
  static constexpr Duration kLongestWait = std::chrono::seconds(10);

  void ready(Instant now) { ready_ = now; }

  // It ended, or did not become ready. How long to wait before the next.
  Duration ended(Instant now) {
    const bool has_served = ready_ && now - *ready_ >= kHealthy;
    ready_.reset();
    if (has_served) {
      wait_ = kFirstWait;
      return Duration(0);
    }
    const Duration wait = wait_;
    wait_ = std::min(2 * wait_, kLongestWait);
    return wait;
  }

 private:
  std::optional<Instant> ready_;  // since when it serves
  Duration wait_ = kFirstWait;
};

}  // namespace fairlead
