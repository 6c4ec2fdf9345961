// The socket of one process that uses models: requests in, at a bounded rate; answers with descriptors out, from a bounded
// queue. Whoever floods is read later; whoever does not read what was sent is cut off.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "runtime/models/model_request.h"
#include "runtime/shim/rate_limit.h"

namespace fairlead {

class ModelConnection {
 public:
  using Blocks = std::shared_ptr<const std::vector<UniqueFd>>;
  struct Events {
    std::function<void(const ModelRequest&)> request;
    std::function<void(std::string why)> closed;  // once, nothing after it; "": the program closed it
  };
  static constexpr std::size_t kMaxQueued = 64;
  static constexpr std::int64_t kRequestsPerSecond = 2'000;

  // `rate`: of all connections of an instance; outlives this one.
  ModelConnection(boost::asio::io_context& io, UniqueFd socket, RateLimit& rate, Events events);
  ModelConnection(const ModelConnection&) = delete;
  ModelConnection& operator=(const ModelConnection&) = delete;

  void start();  // once, after the construction
  // With all blocks, in as many packets as it takes. Failures arrive as `closed`, later.
  void send(ModelAnswer answer, const Blocks& blocks = {});
  void shut();  // no more events

 private:
  struct Packet {
    ModelAnswer answer;
    Blocks blocks;
    std::size_t first = 0, count = 0;
  };
  void wait_read();
  void on_readable();
  void wait_write();
  void pause_write();
  void flush();
  int post(const Packet& packet);
  void close_later(std::string why);

  boost::asio::io_context& io_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::steady_timer pause_, write_pause_;
  const Events events_;
  RateLimit& rate_;
  std::deque<Packet> queued_;
  bool reads_ = false;  // a wait for it, or its pause, is on its way
  bool closed_ = false;
  Lifetime life_;
};

}  // namespace fairlead
