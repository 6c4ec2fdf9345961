#include "net/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <map>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "net/http_connection.h"
#include "net/http_listener.h"
#include "net/http_response.h"
#include "net/tls_handshakes.h"
#include "net/transport.h"

namespace fairlead::net {

// ---- HttpExchange

HttpExchange& HttpExchange::operator=(HttpExchange&& other) noexcept {
  if (this != &other) {
    if (auto abandoned = std::exchange(impl_, std::move(other.impl_))) abandoned->abandon();
  }
  return *this;
}

HttpExchange::~HttpExchange() {
  if (impl_) impl_->abandon();
}

HttpRequest& HttpExchange::request() {
  return impl_->request();
}

void HttpExchange::respond(HttpResponse response) {
  if (auto impl = std::exchange(impl_, nullptr)) impl->respond(std::move(response));
}

void HttpExchange::on_disconnect(std::function<void()> callback) {
  impl_->on_disconnect(std::move(callback));
}

// ---- HttpServer

namespace {

using Executor = boost::asio::io_context::executor_type;
using Timer = boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                                boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr std::size_t kReservedConnections = 64;
// When there are as many connections as there may be, a request that has been arriving for longer makes room.
constexpr auto kSlowRequest = std::chrono::seconds(2);
// Where all connections wait for answers, so large a part of them makes room at a time.
constexpr std::size_t kDroppedPart = 64;
// Out of descriptors: connections wait in the backlog until some are free.
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);

std::optional<std::uint32_t> uid_behind(int fd, const sockaddr_storage& peer) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (peer.ss_family != AF_UNIX) return std::nullopt;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return credentials.uid;
}

struct Listener {
  Listener(boost::asio::io_context& io, int fd, std::string path, TlsHandshakes* tls)
      : descriptor(io.get_executor(), fd), retry(io.get_executor()), unix_path(std::move(path)), handshakes(tls) {}

  boost::asio::posix::basic_stream_descriptor<Executor> descriptor;
  Timer retry;
  std::string unix_path;
  TlsHandshakes* const handshakes;  // null: in the clear
};

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

  void add_listener(int fd, std::string unix_path, TlsHandshakes* handshakes = nullptr) {
    listeners_.push_back(std::make_shared<Listener>(io_, fd, std::move(unix_path), handshakes));
    accept_later(listeners_.back());
  }

  void stop_listening() {
    for (const auto& listener : listeners_) {
      boost::system::error_code ignored;
      listener->descriptor.close(ignored);
      listener->retry.cancel();
      if (!listener->unix_path.empty()) ::unlink(listener->unix_path.c_str());
    }
    listeners_.clear();
  }

  void close() {
    stop_listening();
    state_->open = false;
    tick_timer_.cancel();
    while (!state_->open_connections.empty()) state_->open_connections.front().close();
  }

  std::size_t connections() const { return state_->connections; }
  std::size_t held_bytes() const { return state_->budget.used(); }

 private:
  void accept_later(const std::shared_ptr<Listener>& listener) {
    listener->descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read,
                                    [self = shared_from_this(), listener](const boost::system::error_code& error) {
                                      if (!error) self->accept_all(listener);
                                    });
  }

  void accept_all(const std::shared_ptr<Listener>& listener) {
    while (listener->descriptor.is_open()) {
      sockaddr_storage peer{};
      socklen_t size = sizeof peer;
      const int fd = ::accept4(listener->descriptor.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        if (size == 0) peer.ss_family = AF_UNIX;
        listener->handshakes != nullptr ? shake_hands(*listener->handshakes, fd, peer) : admit(fd, peer, nullptr);
      } else if (errno == EAGAIN) {
        return accept_later(listener);
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return retry_accept(listener);
      } else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) {
        return;
      }  // anything else concerns the one connection that failed
    }
  }

  void retry_accept(const std::shared_ptr<Listener>& listener) {
    listener->retry.expires_after(kAcceptRetry);
    listener->retry.async_wait([self = shared_from_this(), listener](const boost::system::error_code& error) {
      if (!error) self->accept_all(listener);
    });
  }

  // The session comes back on another thread; the server may be gone by then.
  void shake_hands(TlsHandshakes& handshakes, int fd, const sockaddr_storage& peer) {
    auto admit_later = [&io = io_, weak = weak_from_this(), peer](int done, std::unique_ptr<TlsSession> session) {
      boost::asio::post(io, [weak, peer, socket = UniqueFd(done), session = std::move(session)]() mutable {
        if (const auto self = weak.lock(); self && self->state_->open) {
          self->admit(socket.release(), peer, std::move(session));
        }
      });
    };
    handshakes.begin(fd, std::move(admit_later));
  }

  void admit(int fd, const sockaddr_storage& peer, std::unique_ptr<TlsSession> session) {
    // What comes over a Unix socket is the operator's more often than not, and finds room when nobody else does.
    const std::size_t reserved = peer.ss_family == AF_UNIX ? kReservedConnections : 0;
    if (state_->connections >= state_->limits.connections + reserved && !make_room())
      return turn_away(fd, session.get());
    if (peer.ss_family != AF_UNIX) {
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    Transport::Socket socket(io_.get_executor());
    boost::system::error_code error;
    socket.assign(boost::asio::generic::stream_protocol(peer.ss_family, 0), fd, error);
    if (error) {
      ::close(fd);
      return;
    }
    if (state_->connections == 0) start_ticking();
    const Peer who{.is_local = is_local(peer), .uid = uid_behind(fd, peer)};
    std::make_shared<Connection>(state_, Transport(std::move(socket), std::move(session)), who)->start();
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

  void turn_away(int fd, TlsSession* session) {
    std::string head;
    append_response_head({.status = 503, .headers = {{"Retry-After", "1"}}}, {.close = true}, head);
    if (session != nullptr) {
      session->write(head);
    } else {
      [[maybe_unused]] const ssize_t sent = ::send(fd, head.data(), head.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    ::close(fd);
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
  std::vector<std::shared_ptr<Listener>> listeners_;  // shared with their pending accepts
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
  auto listener = open_listener(address);
  if (!listener) return fail(listener.error());
  impl_->add_listener(listener->fd, listener->unix_path);
  return listener->address;
}

Result<std::string> HttpServer::listen(std::string_view address, TlsHandshakes& handshakes) {
  auto listener = open_listener(address);
  if (!listener) return fail(listener.error());
  impl_->add_listener(listener->fd, listener->unix_path, &handshakes);
  return listener->address;
}

Status HttpServer::adopt_listener(int fd) {
  int is_listening = 0;
  socklen_t size = sizeof is_listening;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 || is_listening == 0) {
    return fail(Errc::kInvalidArgument, "adopt_listener: descriptor {} is not a listening socket", fd);
  }
  impl_->add_listener(fd, "");
  return {};
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
