// The node's end of the spawner: orders go out, notes come in, and a spawner that ends is replaced.
//
//   serving ──end of file, or no note for kPatience──> ending ──reaped──> waiting ──> launched ──ready──> serving
//                                                                            ^            │ ended, or not ready in time
//                                                                            └────────────┘
//
// The first spawner is forked from the node while that is small; the next ones are new processes of the node's program, since a
// node that has threads must not fork without exec. Orders wait for the next spawner; once there has been none for kGrace, they
// are refused.
//
// Threads: everything on the io_context's thread. Events come from the event loop, never from inside a call.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/lifetime.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "runtime/spawn_protocol.h"
#include "runtime/spawner.h"
#include "runtime/spawner_restarts.h"

namespace fairlead {

struct SpawnerLinkOptions {
  SpawnerOptions spawner;
  std::string program;  // what is started again as a spawner; "": nothing, its end is for good
  Duration patience =
      std::chrono::seconds(30);  // for the next note while orders are out, and for a new one to be ready
};

struct SpawnerLinkEvents {
  std::function<void(const StartedNote&, std::vector<UniqueFd>&)> started;
  std::function<void(ExitNote)> exited;
  // It ended, and what it had started ends. Orders that are waiting() go to the next one.
  std::function<void(const std::string& why)> lost;
  std::function<void(std::uint64_t instance, const std::string& why)> refused;  // an order that waited
  std::function<void()> replaced;                                               // the next one serves
};

class SpawnerLink {
 public:
  SpawnerLink(boost::asio::io_context& io, SpawnerProcess spawner, SpawnerLinkOptions options,
              SpawnerLinkEvents events);
  ~SpawnerLink();  // ends the spawner, and so all that it started
  SpawnerLink(const SpawnerLink&) = delete;
  SpawnerLink& operator=(const SpawnerLink&) = delete;

  // Less than the core gives an instance to start.
  static constexpr Duration kGrace = std::chrono::seconds(20);

  // kUnavailable: there has been no spawner for too long. REQUIRES: bytes.size() <= kMaxMessageBytes
  Status send(std::uint64_t instance, std::string bytes, UniqueFd log);
  // The order has not been sent.
  bool waiting(std::uint64_t instance) const;
  // Why nothing can start now; "": it can.
  std::string obstacle() const;
  std::uint64_t restarts() const { return restarts_; }

 private:
  enum class State { kServing, kEnding, kWaiting, kLaunched, kGone };
  struct Outage {  // the present or last one
    SpawnerRestarts times;
    std::optional<Instant> since;  // none: there is a spawner
    bool refuses = false;          // orders
    std::string why;
  };
  struct Order {
    std::uint64_t instance;
    std::string bytes;
    UniqueFd log;
  };

  void send_waiting();
  void wait_for_notes();
  void read_notes();
  void take(std::string_view bytes, std::vector<UniqueFd>& fds);
  void end(std::string why);
  void reap();
  void replace();
  void launch();
  void refuse_waiting();
  void watch();

  const SpawnerLinkOptions options_;
  const SpawnerLinkEvents events_;
  State state_ = State::kServing;
  pid_t pid_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::posix::stream_descriptor end_;  // pidfd of one that is ending
  boost::asio::steady_timer launch_timer_;
  boost::asio::steady_timer watchdog_;
  Outage outage_;
  std::uint64_t restarts_ = 0;
  std::deque<Order> waiting_;     // bounded by the instances
  std::set<std::uint64_t> sent_;  // orders without a note
  Lifetime life_;
};

}  // namespace fairlead
