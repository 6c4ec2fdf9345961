// The socket of one shim: packets in, checked and at a bounded rate; packets out, from a bounded queue. What a hostile
// function can do with it is to be slow itself: a flood is read later, a socket that is not read is closed.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/lifetime.h"
#include "base/unique_fd.h"
#include "runtime/shim/rate_limit.h"
#include "wire/shim_frames.h"

namespace fairlead {

class ShimConnection {
 public:
  struct Events {
    // Neither may destroy the connection from inside; both may shut() it. `closed` comes at most once and nothing after it:
    // why is empty when the shim closed it, else what the shim did wrong.
    std::function<void(const wire::Frame&)> frame;
    std::function<void(std::string why)> closed;
  };
  // More packets than this wait for a shim that does not read: closed.
  static constexpr std::size_t kMaxQueuedFrames = 256;
  static constexpr std::int64_t kFramesPerSecond = 20'000;

  ShimConnection(boost::asio::io_context& io, UniqueFd socket, Events events);
  ~ShimConnection() = default;
  ShimConnection(const ShimConnection&) = delete;
  ShimConnection& operator=(const ShimConnection&) = delete;

  // Starts to read; called once, after the construction, so that no event comes from inside it.
  void start();
  // Descriptors go with the first frame only, when nothing can be queued. Failures arrive as `closed`, later.
  void send(const wire::Frame& frame, std::span<const int> fds = {});
  // No more events. What was sent is delivered.
  void shut();
  int native_handle() { return socket_.native_handle(); }

 private:
  void wait_read();
  void on_readable();
  void pause();
  void wait_write();
  void flush();
  void close_later(std::string why);
  void close(std::string why);

  Events events_;
  boost::asio::io_context& io_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::steady_timer pause_;
  RateLimit rate_{kFramesPerSecond, kFramesPerSecond / 4};
  std::deque<std::string> queued_;
  bool reading_ = false;
  bool closed_ = false;
  Lifetime life_;
};

}  // namespace fairlead
