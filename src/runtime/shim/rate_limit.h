// A token bucket: at most `per_second` events, `burst` of them at once. Pure; the caller tells the time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace fairlead {

class RateLimit {
 public:
  // REQUIRES: both above 0.
  RateLimit(std::int64_t per_second, std::int64_t burst)
      : cost_(std::chrono::nanoseconds(std::chrono::seconds(1)) / per_second), depth_(cost_ * burst) {}

  // True: one event may happen now. REQUIRES: `now` does not go back.
  bool take(Instant now) {
    const Instant start = std::max(debt_, now);
    if (start + cost_ > now + depth_) return false;
    debt_ = start + cost_;
    return true;
  }

 private:
  Duration cost_;
  Duration depth_;
  Instant debt_{};  // when the bucket is full again
};

}  // namespace fairlead
