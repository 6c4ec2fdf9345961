// A text that is dear to make and that anybody may ask for as often as they like, such as /metrics of a node with ten thousand
// functions. Making it takes at most a tenth of the serving thread, and what was saved up, at most 50 ms; who asks beyond that gets
// the text of before.
//
// Example: it takes 3 ms. Asked for once a second it is always fresh. Asked for a thousand times a second it is made 17 times in a
// row, then every 30 ms.
//
// Threads: one.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "base/clock.h"

namespace fairlead {

class KeptText {
 public:
  static constexpr int kShare = 10;  // a tenth
  static constexpr Duration kMostSaved = std::chrono::milliseconds(50);

  explicit KeptText(std::function<std::string()> make, std::function<Instant()> clock = monotonic_now)
      : make_(std::move(make)), clock_(std::move(clock)) {}

  const std::string& get() {
    const Instant before = clock_();
    saved_ = std::min(kMostSaved, saved_ + (before - seen_at_) / kShare);
    seen_at_ = before;
    if (saved_ <= Duration(0) && is_made_) return text_;
    text_ = make_();
    is_made_ = true;
    saved_ -= clock_() - before;
    return text_;
  }

 private:
  const std::function<std::string()> make_;
  const std::function<Instant()> clock_;
  std::string text_;
  bool is_made_ = false;
  Duration saved_ = kMostSaved;  // of the thread's time; below 0: the last one was dearer than what there was
  Instant seen_at_{};
};

}  // namespace fairlead
