// A period on the event loop, for those who have something to do while somebody is there and nothing else.
//
// Threads: the io_context's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "base/units.h"

namespace fairlead::net {

class Ticker {
 public:
  // `tick` is called each period from start() on, until it returns false.
  Ticker(boost::asio::io_context& io, Duration period, std::function<bool()> tick);
  ~Ticker();  // no tick follows

  void start();  // nothing where it runs already

 private:
  struct State;
  static void wait(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;  // shared with the pending wait, which may outlive this by an event
};

}  // namespace fairlead::net
