// When an instance that is kept in a seat starts again after it went. At once where it has served since its last start; else later and
// later, so that a function whose program ends by itself does not start all day.
//
// Example: it answered and crashed: at once. It crashes before it answers anything: after 1, 2, 4 ... 64 s.
//
// Time: given. Threads: not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/units.h"

namespace fairlead {

class SeatRetries {
 public:
  static constexpr Duration kFirst = std::chrono::seconds(1);
  static constexpr Duration kLongest = std::chrono::seconds(64);

  // It failed to start, crashed, or outlasted a deadline.
  void failed(Instant now, bool was_starting = false) {
    if (was_starting) ++starts_failed_;
    not_before_ = now + pause_;
    pause_ = pause_ == Duration(0) ? kFirst : std::min(2 * pause_, kLongest);
  }
  void served() {
    pause_ = Duration(0);
    not_before_ = Instant::min();
  }
  void ready() { starts_failed_ = 0; }
  unsigned starts_failed() const { return starts_failed_; }  // in a row, since one was ready
  Instant not_before() const { return not_before_; }

 private:
  Duration pause_ = kFirst;  // after the next failure
  Instant not_before_ = Instant::min();
  unsigned starts_failed_ = 0;
};

}  // namespace fairlead
