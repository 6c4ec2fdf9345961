// A timer for what is mostly over before it is due. Armed for an instant it stays so: what is later changes nothing, what is earlier moves
// it. Fired, it may find nothing to do, and its owner arms it for what is next then.
//
// Example: each request has a deadline a minute ahead and takes 0.2 ms. Armed for the first, the timer fires once a minute; armed and
// cancelled for each it would cost turns of the loop for every request.
//
// Threads: the loop's.
#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/lifetime.h"

namespace fairlead {

class EarliestTimer {
 public:
  explicit EarliestTimer(boost::asio::io_context& io) : timer_(io) {}

  // `call` comes once, not before `at`, or not at all where an earlier one is armed: that one's comes. None: nothing is armed.
  template <typename Call>
  void arm(std::optional<Instant> at, Call call) {
    if (!at || (armed_ && *armed_ <= *at)) return;
    armed_ = at;
    timer_.expires_after(std::max(Duration(0), *at - monotonic_now()));
    timer_.async_wait(life_.on_success([this, call = std::move(call)] {
      armed_.reset();
      call();
    }));
  }

 private:
  boost::asio::steady_timer timer_;
  std::optional<Instant> armed_;
  Lifetime life_;
};

}  // namespace fairlead
