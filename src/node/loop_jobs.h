// Jobs of an object on its event loop. They do nothing once the object is gone.
//
// Threads: the loop's; the object is destroyed there.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/lifetime.h"
#include "base/units.h"

namespace fairlead {

class LoopJobs {
 public:
  explicit LoopJobs(boost::asio::io_context& io) : io_(io), timer_(io) {}

  boost::asio::io_context& io() { return io_; }
  Lifetime::Watch watch() const { return life_.watch(); }
  template <typename F>
  auto guarded(F call) const {
    return life_.guarded(std::move(call));
  }

  template <typename F>
  void post(F job) {
    boost::asio::post(io_, life_.guarded([job = std::move(job)]() mutable { job(); }));
  }
  // No effect while an earlier one waits for its time.
  template <typename F>
  void soon(Duration after, F job) {
    if (std::exchange(is_soon_, true)) return;
    timer_.expires_after(after);
    timer_.async_wait(life_.on_success([this, job = std::move(job)]() mutable {
      is_soon_ = false;
      job();
    }));
  }

 private:
  boost::asio::io_context& io_;
  boost::asio::steady_timer timer_;
  bool is_soon_ = false;
  Lifetime life_;
};

}  // namespace fairlead
