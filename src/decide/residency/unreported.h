// How much of a device's memory is taken by what no instance reports? Contexts, other programs, what the driver keeps: a
// context alone is 550 MiB on an H200, so ten warm instances hide 5 GiB from books that add up reports.
//
// The device says how much is used, the reports say by whom; the rest is unreported. Both are samples of different moments:
// an allocation or an end in between looks like unreported memory for a sample or two. So it is the least of the last five
// samples, a second at the monitor period: what comes is believed late, what goes at once. While memory moves, nobody knows
// how much of it has, so no sample is taken.
//
// Example: used 12.0 GiB, reported 11.5: 0.5 unreported. A function allocates 2 GiB and reports 200 ms later: one sample
// says 2.5, the answer stays 0.5.
//
// Threads: not thread-safe. Determinism: integers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/units.h"

namespace fairlead {

class Unreported {
 public:
  static constexpr std::size_t kWindow = 5;

  void sample(Bytes used, Bytes reported) {
    samples_[next_++ % kWindow] = std::max(Bytes(0), used - reported);
    least_ = *std::min_element(samples_.begin(), samples_.end());
  }
  Bytes bytes() const { return least_; }

 private:
  std::array<Bytes, kWindow> samples_{};
  std::size_t next_ = 0;
  Bytes least_{0};
};

}  // namespace fairlead
