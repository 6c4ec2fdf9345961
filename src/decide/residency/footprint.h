// How much device memory will the next invocation of a function need? As much as the most that any of its last 16 needed.
//
// Example: calls that need 1 GiB, every tenth 4 GiB. The estimate is 4 GiB for five calls in six; the moving average
// 0.9 / 0.1 settles near 1.3 GiB and is too low for every single large call. Too low an estimate makes a call wait for
// room in the middle of its run, or fail beside another that grew; too high a one makes another call wait for a slot.
// The first is worse, so the estimate errs upwards (docs/explanation/residency.md has the comparison).
//
// Threads: not thread-safe. Determinism: integers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/units.h"

namespace fairlead {

class Footprint {
 public:
  static constexpr std::size_t kWindow = 16;

  // `seed` counts as one invocation; 0: not known.
  explicit Footprint(Bytes seed) { sample(seed); }

  Bytes estimate() const { return std::max(running_, greatest_); }
  void raise(Bytes seen);   // in the middle of a run: it needs so much at least
  void sample(Bytes peak);  // one invocation is over, and this was the most it needed

 private:
  std::array<Bytes, kWindow> peaks_{};
  std::size_t next_ = 0;
  Bytes greatest_{0};  // of peaks_
  Bytes running_{0};   // seen since the last sample
};

}  // namespace fairlead
