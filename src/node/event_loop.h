// The node's one thread. Between two messages of a call the loop looks for the next one for a moment before it sleeps:
// waking a sleeping thread on another core costs 20-40 us, several times what the node itself adds to a call.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>

#include "base/units.h"

namespace fairlead {

// Runs until `io` is stopped. `expecting`: whether an event is likely within kSpin (an invocation is running); when it
// says no, the loop sleeps at once, so an idle node uses no processor.
class EventLoop {
 public:
  static constexpr Duration kSpin = std::chrono::microseconds(50);

  EventLoop(boost::asio::io_context& io, std::function<bool()> expecting) : io_(io), expecting_(std::move(expecting)) {}
  void run();

 private:
  boost::asio::io_context& io_;
  std::function<bool()> expecting_;
};

}  // namespace fairlead
