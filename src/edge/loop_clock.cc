#include "edge/loop_clock.h"

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "base/clock.h"

namespace fairlead {

LoopClock clock_of(boost::asio::io_context& io) {
  const auto after = [&io](Duration wait, std::function<void()> then) {
    const auto timer = std::make_shared<boost::asio::steady_timer>(io, wait);
    timer->async_wait([timer, then = std::move(then)](const boost::system::error_code& error) {
      if (!error) then();
    });
  };
  return {.now = monotonic_now, .after = after};
}

}  // namespace fairlead
