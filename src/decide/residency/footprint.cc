#include "decide/residency/footprint.h"

#include <algorithm>
#include <utility>

namespace fairlead {

void Footprint::raise(Bytes seen) {
  running_ = std::max(running_, seen);
}

void Footprint::sample(Bytes peak) {
  const Bytes forgotten = std::exchange(peaks_[next_], peak);
  next_ = (next_ + 1) % kWindow;
  greatest_ = forgotten < greatest_ ? std::max(greatest_, peak) : *std::max_element(peaks_.begin(), peaks_.end());
  running_ = Bytes(0);
}

}  // namespace fairlead
