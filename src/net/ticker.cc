#include "net/ticker.h"

#include <boost/asio/steady_timer.hpp>
#include <utility>

namespace fairlead::net {

struct Ticker::State {
  boost::asio::steady_timer timer;
  Duration period;
  std::function<bool()> tick;  // empty: the ticker is gone
  bool runs = false;
};

Ticker::Ticker(boost::asio::io_context& io, Duration period, std::function<bool()> tick)
    : state_(std::make_shared<State>(State{boost::asio::steady_timer(io), period, std::move(tick)})) {}

Ticker::~Ticker() {
  state_->tick = nullptr;
  state_->timer.cancel();
}

void Ticker::start() {
  if (std::exchange(state_->runs, true)) return;
  wait(state_);
}

void Ticker::wait(const std::shared_ptr<State>& state) {
  state->timer.expires_after(state->period);
  state->timer.async_wait([state](const boost::system::error_code& error) {
    if (error || !state->tick) return;
    if (state->tick()) return wait(state);
    state->runs = false;
  });
}

}  // namespace fairlead::net
