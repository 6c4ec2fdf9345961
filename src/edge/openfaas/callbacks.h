// Callbacks of asynchronous calls: what became of a call is posted to the URL that its caller gave.
//
//   post ──> waits for its turn ──try──> any status: over
//                  ^                 └──> not delivered: again after 1 s, then 4 s; after the third try it is dropped and logged
//
// Example: a hook that is restarted while a call ends is posted to at 0 s and 1 s (refused), and at 5 s, when it listens again.
//
// What waits is in memory alone: a node that dies loses it, and one that stops does not wait for it. Bounds: kMostCallbacks of them with
// kMostBytes, of which kMostAtOnce are under way; what is beyond is dropped and logged. Of each of the three a tenant may have as much as
// is left free (base/byte_budget.h), and tenants take turns: whose hooks never answer keeps his own callbacks waiting. A try that takes longer than a sender's patience
// is not delivered. A hook that was slow to answer may so be posted to twice: X-Call-Id tells.
//
// Threads: the io_context's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/byte_budget.h"
#include "base/lifetime.h"
#include "base/result.h"
#include "base/units.h"
#include "edge/openfaas/callback_url.h"
#include "net/http_client.h"

namespace fairlead::openfaas {

struct Callback {
  CallbackUrl url;
  net::ClientRequest request;  // its method is POST, its target the URL's
  std::string tenant = {};     // whose function was called
};

// Tries once. `done` is called once, later: success means that the other side answered, whatever it said.
using SendCallback = std::function<void(const Callback& callback, std::function<void(Status)> done)>;

class Callbacks {
 public:
  static constexpr std::size_t kMostCallbacks = 1024;
  static constexpr std::size_t kMostBytes = 64 << 20;
  static constexpr std::size_t kMostAtOnce = 32;
  static constexpr int kTries = 3;

  Callbacks(boost::asio::io_context& io, SendCallback send, Duration first_pause = std::chrono::seconds(1))
      : io_(io), send_(std::move(send)), first_pause_(first_pause) {}
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;
  ~Callbacks() { life_.end(); }

  void post(Callback callback);

  struct Counters {
    std::size_t held = 0, bytes = 0, under_way = 0;
    std::uint64_t delivered = 0, dropped = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Held {
    Callback callback;
    int tries = 0;
  };
  using HeldPtr = std::shared_ptr<Held>;  // std::function wants copies

  static std::size_t bytes_of(const Callback& callback);
  void wait(const HeldPtr& held);
  bool start_one();
  void start_next();
  void tried(const HeldPtr& held, const Status& status);
  void forget(const Held& held);

  boost::asio::io_context& io_;
  const SendCallback send_;
  const Duration first_pause_;
  std::map<std::string, std::deque<HeldPtr>> waiting_;  // by tenant; no queue is empty
  std::deque<std::string> turns_;                       // the same tenants; who was longest not served comes first
  ByteBudget places_{kMostCallbacks}, bytes_{kMostBytes}, under_way_{kMostAtOnce};
  Counters counters_;
  Lifetime life_;
};

}  // namespace fairlead::openfaas
