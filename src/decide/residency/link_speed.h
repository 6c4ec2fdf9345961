// How fast device memory moves over a device's link, learnt from the moves that were done. So what has left the device is
// known to cost something before its instance can run again.
//
// Moves queue on the link. A move is therefore measured with all that was on the link when it began: 1 GiB that began behind
// 3 GiB of others and was done after 0.4 s tells of 10 GiB/s. A moving average, 0.9 old + 0.1 new; small moves tell more of
// the way there and back than of the link, so they do not count. Until the first one that counts, 10 GiB/s is assumed: what a
// PCIe 3 link of 16 lanes does at best, and half of what PCIe 4 does.
//
// Threads: not thread-safe. Determinism: integer arithmetic.
#pragma once

#include "base/units.h"

namespace fairlead {

class LinkSpeed {
 public:
  static constexpr Bytes kLeastMeasured{std::int64_t{64} << 20};

  // A move was done, `took` after it began; `on_the_link`: bytes of all moves, its own included, when it began.
  void learn(Bytes on_the_link, Duration took) {
    if (on_the_link < kLeastMeasured || took <= Duration(0)) return;
    const Duration sample = scaled(took, kGib, on_the_link);
    per_gib_ = measured_ ? per_gib_ + (sample - per_gib_) / 10 : sample;
    measured_ = true;
  }

  Duration time_of(Bytes bytes) const { return scaled(per_gib_, bytes, kGib); }

 private:
  static constexpr Bytes kGib{std::int64_t{1} << 30};
  static Duration scaled(Duration time, Bytes to, Bytes from) {
    return Duration(static_cast<Duration::rep>(static_cast<__int128>(time.count()) * to.count() / from.count()));
  }

  Duration per_gib_ = std::chrono::milliseconds(100);
  bool measured_ = false;
};

}  // namespace fairlead
