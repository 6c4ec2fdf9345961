#include "net/http_server.h"

#include <algorithm>
#include <boost/asio/basic_waitable_timer.hpp>
#include <map>
#include <vector>

#include "base/clock.h"
#include "net/acceptor.h"
#include "net/http_connection.h"
#include "net/http_response.h"

namespace fairlead::net {

namespace {

using Executor = boost::asio::io_context::executor_type;
using Timer = boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                                boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr std::size_t kReservedConnections = 64;
// When there are as many connections as there may be, a request that has been arriving for longer makes room.
constexpr auto kSlowRequest = std::chrono::seconds(2);
// Where all connections wait for answers, so large a part of them makes room at a time.
constexpr std::size_t kDroppedPart = 64;

}  // namespace

class HttpServer::Impl : public std::enable_shared_from_this<HttpServer::Impl> {
 public:
  Impl(boost::asio::io_context& io, HttpLimits limits, HttpHandler handler, BodySinks sinks, RequestMemory memory)
      : io_(io), state_(std::make_shared<ServerState>(std::move(memory))), tick_timer_(io.get_executor()) {
    state_->limits = limits;
    state_->handler = std::move(handler);
    state_->sinks = std::move(sinks);
    tick_ = std::clamp<Duration>(std::min(limits.idle_timeout, limits.transfer_timeout) / 4,
                                 std::chrono::milliseconds(1), std::chrono::seconds(1));
  }

  Acceptor& acceptor() {
    if (!acceptor_) {
      acceptor_ = std::make_shared<Acceptor>(io_, [weak = weak_from_this()](Accepted accepted) {
        if (const auto self = weak.lock()) self->admit(std::move(accepted));
      });
    }
    return *acceptor_;
  }

  void stop_listening() {
    if (acceptor_) acceptor_->stop();
  }

  void close() {
    if (acceptor_) acceptor_->close();
    state_->open = false;
    tick_timer_.cancel();
    while (!state_->open_connections.empty()) state_->open_connections.front().close();
  }

  std::size_t connections() const { return state_->connections; }
  std::size_t held_bytes() const { return state_->budget.used(); }

 private:
  void admit(Accepted accepted) {
    // What comes over a Unix socket is the operator's more often than not, and finds room when nobody else does.
    const std::size_t reserved = accepted.peer.uid ? kReservedConnections : 0;
    if (state_->connections >= state_->limits.connections + reserved && !make_room()) {
      return turn_away(accepted.transport);
    }
    if (state_->connections == 0) start_ticking();
    std::make_shared<Connection>(state_, std::move(accepted.transport), accepted.peer)->start();
  }

  // Closes a connection that does nothing for the node, the longest idle one first: who opens many and leaves them idle,
  // or drips bytes into them, keeps nobody else out.
  bool make_room() {
    if (!state_->waiting_for_request.empty()) {
      state_->waiting_for_request.front().close();
      return true;
    }
    state_->now = monotonic_now();
    if (state_->waiting_for_transfer.empty()) return drop_of_the_largest();
    Connection& slowest = state_->waiting_for_transfer.front();
    if (slowest.waiting_since() + kSlowRequest > state_->now) return drop_of_the_largest();
    slowest.drop();
    return true;
  }

  // All wait for answers: who has the most connections that do loses the newest of them, so that nobody's long waits keep others
  // out. Some at a time, as all have to be looked at.
  bool drop_of_the_largest() {
    if (!state_->memory.holder) return false;
    std::map<std::string, std::vector<std::shared_ptr<Connection>>> waiting;
    for (Connection& connection : state_->open_connections) {
      if (const auto holder = connection.holder()) waiting[*holder].push_back(connection.shared_from_this());
    }
    const auto largest = std::ranges::max_element(waiting, {}, [](const auto& held) { return held.second.size(); });
    if (largest == waiting.end() || largest->second.size() == 1) return false;
    const std::size_t most = std::max<std::size_t>(state_->limits.connections / kDroppedPart, 1);
    const std::size_t count = std::min(most, largest->second.size() - 1);
    for (auto it = largest->second.rbegin(); it != largest->second.rbegin() + static_cast<std::ptrdiff_t>(count);
         ++it) {
      (*it)->drop();
    }
    return true;
  }

  static void turn_away(Transport& transport) {
    std::string head;
    append_response_head({.status = 503, .headers = {{"Retry-After", "1"}}}, {.close = true}, head);
    transport.send(head, {});
    transport.close();
  }

  // The clock ticks only while there are connections: an idle server causes no wake-ups.
  void start_ticking() {
    state_->now = monotonic_now();
    if (!ticking_) tick_later();
  }

  void tick_later() {
    ticking_ = true;
    tick_timer_.expires_after(tick_);
    tick_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (!self) return;
      self->ticking_ = false;
      if (!error) self->tick();
    });
  }

  void tick() {
    state_->now = monotonic_now();
    expire(state_->waiting_for_request, state_->now - state_->limits.idle_timeout);
    expire(state_->waiting_for_transfer, state_->now - state_->limits.transfer_timeout);
    if (state_->connections > 0 && !ticking_) tick_later();
  }

  template <typename List>
  void expire(List& list, Instant oldest) {
    while (!list.empty() && list.front().waiting_since() < oldest) {
      const auto connection = list.front().shared_from_this();
      connection->on_timeout();
    }
  }

  boost::asio::io_context& io_;
  const std::shared_ptr<ServerState> state_;  // shared with connections, which may outlive the server by an event
  std::shared_ptr<Acceptor> acceptor_;        // none: it never listened; takes nobody after close()
  Timer tick_timer_;
  Duration tick_;
  bool ticking_ = false;
};

HttpServer::HttpServer(boost::asio::io_context& io, HttpLimits limits, HttpHandler handler, BodySinks sinks,
                       RequestMemory memory)
    : impl_(std::make_shared<Impl>(io, limits, std::move(handler), std::move(sinks), std::move(memory))) {}

HttpServer::~HttpServer() {
  close();
}

Result<std::string> HttpServer::listen(std::string_view address) {
  return impl_->acceptor().listen(address, nullptr);
}

Result<std::string> HttpServer::listen(std::string_view address, TlsHandshakes& handshakes) {
  return impl_->acceptor().listen(address, &handshakes);
}

Status HttpServer::adopt_listener(int fd) {
  return impl_->acceptor().adopt(fd);
}

void HttpServer::stop_listening() {
  impl_->stop_listening();
}
void HttpServer::close() {
  impl_->close();
}
std::size_t HttpServer::connections() const {
  return impl_->connections();
}
std::size_t HttpServer::held_bytes() const {
  return impl_->held_bytes();
}

}  // namespace fairlead::net
