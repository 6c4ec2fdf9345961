// When a function whose instances do not start has seats again. A seat that waits for a start holds a rectangle that others could have; so
// after three starts in a row that came to nothing it is given back, and tried again later and later, one seat at a time.
//
// Example. A program that ends at once: three starts within 3 s, then no seat for 30 s; one start, none for 60 s; ... at most for 10 minutes.
// A start that succeeds ends it.
//
// Pure. Time: given. Threads: not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "base/units.h"

namespace fairlead {

class StartBackoff {
 public:
  static constexpr unsigned kMostFailures = 3;
  static constexpr Duration kFirst = std::chrono::seconds(30);
  static constexpr Duration kLongest = std::chrono::minutes(10);

  // `failed`: starts in a row, until now. True: one more failed, and the seats that no instance is ready in are to be given back.
  bool note(Instant now, unsigned failed) {
    const bool is_one_more = failed > failed_;
    failed_ = failed;
    if (failed == 0) pause_ = Duration(0), until_.reset();
    if (!is_one_more || failed < kMostFailures) return false;
    pause_ = std::clamp(2 * pause_, kFirst, kLongest);
    until_ = now + pause_;
    return true;
  }
  // Seats to come that may be asked for: as many as are wanted, one to try, or none.
  std::size_t allowed(Instant now, std::size_t wanted) const {
    if (!until_) return wanted;
    return now < *until_ ? 0 : std::min<std::size_t>(wanted, 1);
  }
  bool holds(Instant now) const { return until_ && now < *until_; }
  // "" unless starts fail.
  std::string why() const {
    if (!until_) return "";
    return fmt::format(
        "its instances do not start: {} starts in a row failed (fairlead logs says why); its seats are given back, and "
        "one is tried again {:.0f} s after the last",
        failed_, to_seconds(pause_));
  }

 private:
  unsigned failed_ = 0;
  Duration pause_{0};
  std::optional<Instant> until_;
};

}  // namespace fairlead
