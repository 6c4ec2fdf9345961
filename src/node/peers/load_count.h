// What a node has to do, counted again only as often as counting is cheap: at most half a per cent of a thread. What 10,000 functions have takes
// 20 ms to count, so theirs is counted every 4 s; that of a hundred with each word.
//
// Not thread-safe. Time: handed in, as what the clock says before and after.
#pragma once

#include <functional>
#include <utility>

#include "base/units.h"
#include "node/peers/peers.h"

namespace fairlead {

class LoadCount {
 public:
  static constexpr int kPause = 200;  // times what counting took

  using Clock = std::function<Instant()>;
  LoadCount(Clock clock, std::function<OwnLoad()> count) : clock_(std::move(clock)), count_(std::move(count)) {}

  const OwnLoad& now() {
    const Instant begin = clock_();
    if (begin >= due_) {
      load_ = count_();
      due_ = begin + kPause * (clock_() - begin);
    }
    return load_;
  }

 private:
  const Clock clock_;
  const std::function<OwnLoad()> count_;
  OwnLoad load_;
  Instant due_ = Instant::min();
};

}  // namespace fairlead
