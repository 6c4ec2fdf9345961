// How often a flow is called, as far as that is known: what the queues have learnt, told to those who foresee the next call.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/units.h"

namespace fairlead {

struct ArrivalPace {
  static constexpr Duration kNeverCalled = std::chrono::hours(1);

  Duration mean = kNeverCalled;   // between two arrivals; a flow that came once is not expected
  Instant last = Instant::max();  // arrival; none yet, or one alone

  // Until the next arrival. A flow that has fallen silent is not expected sooner than it has been silent.
  Duration gap(Instant now) const { return std::max(mean, now - last); }

  // The same where so many invocations wait within the window. They need their instance as soon as there is a slot: each
  // counts as one in 20 s. Else who waits longest, and so seems silent, would be the first to lose its instance, and start
  // again for the same work. With 1 s an idle instance that takes 15 s to start and is called every 40 s would go for one that
  // takes 0.2 s and waits.
  Duration gap(Instant now, std::size_t waiting) const {
    constexpr Duration kWaits = std::chrono::seconds(20);
    return waiting == 0 ? gap(now) : std::min(gap(now), kWaits / static_cast<Duration::rep>(waiting));
  }
};

}  // namespace fairlead
