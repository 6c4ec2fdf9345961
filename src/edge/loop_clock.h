// The time of an event loop, for those who have something to do later, and for tests that say what time it is.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>

#include "base/units.h"

namespace fairlead {

struct LoopClock {
  std::function<Instant()> now;
  std::function<void(Duration, std::function<void()>)> after;  // calls back once, from the loop
};

// REQUIRES: `io` outlives the clock.
LoopClock clock_of(boost::asio::io_context& io);

}  // namespace fairlead
