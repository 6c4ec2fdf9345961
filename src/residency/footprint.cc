#include "residency/footprint.h"

#include <algorithm>

namespace fairlead {

Bytes Footprint::estimate() const {
  return std::max(running_, *std::max_element(peaks_.begin(), peaks_.end()));
}

void Footprint::raise(Bytes seen) {
  running_ = std::max(running_, seen);
}

void Footprint::sample(Bytes peak) {
  peaks_[next_] = peak;
  next_ = (next_ + 1) % kWindow;
  running_ = Bytes(0);
}

}  // namespace fairlead
