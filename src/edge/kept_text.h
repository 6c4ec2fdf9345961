// A text that is dear to make and that anybody may ask for as often as they like, such as /metrics of a node with ten thousand
// functions. It is kept for ten times as long as it took to make, so that making it takes at most a tenth of the serving thread,
// whoever asks. A text that takes less than 0.2 ms is made anew each time.
//
// Threads: one.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/clock.h"

namespace fairlead {

class KeptText {
 public:
  static constexpr Duration kCheap = std::chrono::microseconds(200);
  static constexpr int kTimes = 10;

  explicit KeptText(std::function<std::string()> make, std::function<Instant()> clock = monotonic_now)
      : make_(std::move(make)), clock_(std::move(clock)) {}

  const std::string& get() {
    const Instant before = clock_();
    if (before < kept_until_) return text_;
    text_ = make_();
    const Instant after = clock_();
    kept_until_ = after - before < kCheap ? Instant::min() : after + (after - before) * kTimes;
    return text_;
  }

 private:
  const std::function<std::string()> make_;
  const std::function<Instant()> clock_;
  std::string text_;
  Instant kept_until_ = Instant::min();
};

}  // namespace fairlead
