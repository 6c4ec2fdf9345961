// Deployments that take long, and those that failed after their caller was answered: a client waits a minute, an image may take more.
//
//   begin ──ended within kPatience──> the caller is told how it ended
//         └─────── later ───────────> the caller is told 202; who asks sees that there is nothing yet, or why it failed
//
// Example: an image of 8 GiB is pulled for three minutes. faas-cli has 202 after 10 s; `faas-cli describe` shows 0 replicas, then 1; or,
// where the registry fails, 0 replicas and the annotation fairlead/error.
//
// Bounds: kMostFailures failures are kept, the oldest go first; what is under way is bounded by what the node takes.
// Threads: the io_context's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "net/http_server.h"

namespace fairlead::openfaas {

struct Rollout {
  std::string function;
  std::string tenant;
  std::string image;
  std::int64_t begun_ms = 0;
  std::string error;  // "": it is under way
};

class Rollouts {
 public:
  static constexpr std::size_t kMostFailures = 256;
  static constexpr Duration kPatience = std::chrono::seconds(10);

  explicit Rollouts(boost::asio::io_context& io, Duration patience = kPatience) : io_(io), patience_(patience) {}

  // The answer is given to `exchange` when the returned function is called, once, or after the patience.
  using Ended = std::function<void(Status)>;
  Ended begin(net::HttpExchange exchange, Rollout rollout);

  const Rollout* find(const std::string& function) const;  // null: none is under way, and the last one did not fail
  const std::deque<Rollout>& all() const { return rollouts_; }
  void forget(const std::string& function);  // a failure; what is under way stays

 private:
  void ended(const std::string& function, const Status& status);

  boost::asio::io_context& io_;
  const Duration patience_;
  std::deque<Rollout> rollouts_;  // one for a function, the oldest first
};

}  // namespace fairlead::openfaas
