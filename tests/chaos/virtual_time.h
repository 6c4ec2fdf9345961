// Time as the test says it is. This library defines the clocks of std::chrono, so that whatever is linked with it lives in virtual
// time: the node's two clocks (base/clock.h), and every timer of its event loop.
//
//   VirtualTime::pass(5 s) ──> steady and system clock are 5 s later ──> fire_timers(io): those that are due run
//   VirtualTime::set_wall(-1 h) ──> the system clock alone, as when somebody sets it
//
// Threads: any.
#pragma once

#include <boost/asio/io_context.hpp>

#include "base/units.h"

namespace fairlead::chaos {

struct VirtualTime {
  static void pass(Duration time);
  static void set_wall(Duration by);
  // Does all that is to be done at this moment. Returns how much that was.
  static std::size_t run(boost::asio::io_context& io);
};

}  // namespace fairlead::chaos
