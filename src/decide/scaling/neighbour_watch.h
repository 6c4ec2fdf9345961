// Whether a neighbour was there all the while that a trial beside it was measured.
//
// Idea. The neighbour keeps one request running, as the trial does. One that hangs, or whose process ended, answers no more: its longest silence
// grows. What was measured counts only where no silence was longer than the caller allows, and the last answer came after enough was known.
//
// Pure. Not thread-safe. Determinism: of the calls.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace fairlead {

class NeighbourWatch {
 public:
  // It was answered.
  void answered(Instant now) {
    ++answers_;
    longest_ = std::max(longest_, now - last_);
    last_ = now;
  }
  // From now on its silences count.
  void begin(Instant now) {
    longest_ = Duration(0);
    last_ = now;
  }

  std::uint64_t answers() const { return answers_; }  // in all
  Instant last() const { return last_; }              // answer, or begin()
  // The longest time without an answer since begin(), that which goes on included.
  Duration silence(Instant now) const { return std::max(longest_, now - last_); }

 private:
  std::uint64_t answers_ = 0;
  Instant last_{};
  Duration longest_{0};
};

}  // namespace fairlead
