#include "chaos/virtual_time.h"

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

namespace {

// A machine that has run for a day, on the 31st of January 2026.
std::atomic<std::int64_t> steady_ns{86'400'000'000'000};
std::atomic<std::int64_t> wall_ns{1'769'817'600'000'000'000};

}  // namespace

std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept {
  return time_point(duration(steady_ns.load()));
}

std::chrono::system_clock::time_point std::chrono::system_clock::now() noexcept {
  return time_point(duration(wall_ns.load()));
}

namespace fairlead::chaos {

void VirtualTime::pass(Duration time) {
  steady_ns += time.count();
  wall_ns += time.count();
}

void VirtualTime::set_wall(Duration by) {
  wall_ns += by.count();
}

// The event loop looks at its timers when the kernel's timer has fired, and that runs in real time. One that is long due makes it
// fire at once.
std::size_t VirtualTime::run(boost::asio::io_context& io) {
  boost::asio::steady_timer kick(io, std::chrono::steady_clock::time_point{});
  bool fired = false;
  kick.async_wait([&](boost::system::error_code) { fired = true; });
  std::size_t done = 0;
  io.restart();
  while (!fired) done += io.poll();
  while (const std::size_t more = io.poll()) done += more;
  return done - 1;
}

}  // namespace fairlead::chaos
