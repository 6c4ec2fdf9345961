// The core in real time: events go in one at a time, the actions that follow are handed on one after the other, and the core
// is woken when it asked to be.
//
//   tell(event) ──> Core ──actions──> queue ──one at a time──> act ──may tell further events──┐
//                                       └<────────────────────────────────────────────────────┘
//
// Actions that follow from a later state of the core wait until all earlier ones are carried out. Example: Complete of A is
// carried out, A's caller calls B at once, and B's Deliver is carried out after what A's answer caused.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "decide/core/core.h"

namespace fairlead {

class CoreDriver {
 public:
  using Act = std::function<void(const Action&)>;

  CoreDriver(boost::asio::io_context& io, const CoreOptions& options, std::unique_ptr<FlowQueue> policy);

  // Who carries out actions, and who is called each time after all of them have been. Before the first event.
  void connect(Act act, std::function<void()> settled);

  // `event` is called with the core, the time, and the list for the actions that follow, which are then carried out.
  template <typename Event>
  void tell(Event event) {
    Actions actions;
    event(core_, monotonic_now(), actions);
    carry_out(std::move(actions));
  }
  void carry_out(Actions actions);

  // For views, and for what has no actions.
  Core& core() { return core_; }
  const Core& core() const { return core_; }

 private:
  void arm_timer();

  Core core_;
  Act act_;
  std::function<void()> settled_;
  std::deque<Action> pending_;
  bool carrying_out_ = false;
  boost::asio::steady_timer timer_;
  Instant armed_at_ = Instant::max();
};

}  // namespace fairlead
