#include "node/core_driver.h"

#include <utility>

namespace fairlead {

CoreDriver::CoreDriver(boost::asio::io_context& io, const CoreOptions& options, std::unique_ptr<FlowQueue> policy)
    : core_(options, std::move(policy)), timer_(io) {}

void CoreDriver::connect(Act act, std::function<void()> settled) {
  act_ = std::move(act);
  settled_ = std::move(settled);
}

void CoreDriver::carry_out(Actions actions) {
  pending_.insert(pending_.end(), actions.begin(), actions.end());
  if (carrying_out_) return;
  carrying_out_ = true;
  while (!pending_.empty()) {
    const Action action = pending_.front();
    pending_.pop_front();
    act_(action);
  }
  carrying_out_ = false;
  arm_timer();
  settled_();
}

void CoreDriver::arm_timer() {
  const auto next = core_.next_wakeup();
  if (!next || *next >= armed_at_) return;
  armed_at_ = *next;
  timer_.expires_at(std::chrono::steady_clock::time_point(next->time_since_epoch()));
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // re-armed for an earlier time
    armed_at_ = Instant::max();
    tell([](Core& core, Instant now, Actions& out) { core.wake(now, out); });
  });
}

}  // namespace fairlead
