#include "net/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/unique_fd.h"
#include "net/http_listener.h"
#include "net/tls_handshakes.h"

namespace fairlead::net {
namespace {

using Executor = boost::asio::io_context::executor_type;
using Timer = boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                                boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr int kMostAtOnce = 32;  // in one turn of the event loop
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);

Peer peer_behind(int fd, const sockaddr_storage& address) {
  Peer peer{.is_local = is_local(address), .uid = std::nullopt};
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (address.ss_family == AF_UNIX && ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
    peer.uid = credentials.uid;
  }
  return peer;
}

int family_of(int fd) {
  int family = 0;
  socklen_t size = sizeof family;
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 ? family : AF_UNSPEC;
}

}  // namespace

struct Acceptor::Listener {
  Listener(boost::asio::io_context& io, int fd, std::string path, TlsHandshakes* tls)
      : descriptor(io.get_executor(), fd), retry(io.get_executor()), unix_path(std::move(path)), handshakes(tls) {}

  boost::asio::posix::basic_stream_descriptor<Executor> descriptor;
  Timer retry;
  std::string unix_path;
  TlsHandshakes* const handshakes;  // null: in the clear
};

Result<std::string> Acceptor::listen(std::string_view address, TlsHandshakes* handshakes) {
  auto listener = open_listener(address);
  if (!listener) return fail(listener.error());
  add(listener->fd, listener->unix_path, handshakes);
  return listener->address;
}

Status Acceptor::adopt(int fd) {
  int is_listening = 0;
  socklen_t size = sizeof is_listening;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 || is_listening == 0) {
    return fail(Errc::kInvalidArgument, "adopt_listener: descriptor {} is not a listening socket", fd);
  }
  add(fd, "", nullptr);
  return {};
}

void Acceptor::add(int fd, std::string unix_path, TlsHandshakes* handshakes) {
  listeners_.push_back(std::make_shared<Listener>(io_, fd, std::move(unix_path), handshakes));
  accept_later(listeners_.back());
}

void Acceptor::stop() {
  for (const auto& listener : listeners_) {
    boost::system::error_code ignored;
    listener->descriptor.close(ignored);
    listener->retry.cancel();
    if (!listener->unix_path.empty()) ::unlink(listener->unix_path.c_str());
  }
  listeners_.clear();
}

void Acceptor::close() {
  stop();
  closed_ = true;
}

void Acceptor::accept_later(const std::shared_ptr<Listener>& listener) {
  listener->descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read,
                                  [self = shared_from_this(), listener](const boost::system::error_code& error) {
                                    if (!error) self->accept_all(listener);
                                  });
}

void Acceptor::accept_all(const std::shared_ptr<Listener>& listener) {
  for (int taken = 0; listener->descriptor.is_open(); ++taken) {
    if (taken == kMostAtOnce) return accept_later(listener);  // others have their turn; who waits still waits then
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int fd = ::accept4(listener->descriptor.native_handle(), reinterpret_cast<sockaddr*>(&address), &size,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      if (size == 0) address.ss_family = AF_UNIX;
      const Peer peer = peer_behind(fd, address);
      listener->handshakes != nullptr ? shake_hands(*listener->handshakes, fd, peer) : take(fd, peer, nullptr);
    } else if (errno == EAGAIN) {
      return accept_later(listener);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return accept_again(listener);
    } else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) {
      return;
    }  // anything else concerns the one connection that failed
  }
}

void Acceptor::accept_again(const std::shared_ptr<Listener>& listener) {
  listener->retry.expires_after(kAcceptRetry);
  listener->retry.async_wait([self = shared_from_this(), listener](const boost::system::error_code& error) {
    if (!error) self->accept_all(listener);
  });
}

// The session comes back on another thread; the acceptor may be gone by then.
void Acceptor::shake_hands(TlsHandshakes& handshakes, int fd, const Peer& peer) {
  auto take_later = [&io = io_, weak = weak_from_this(), peer](int done, std::unique_ptr<TlsSession> session) {
    boost::asio::post(io, [weak, peer, socket = UniqueFd(done), session = std::move(session)]() mutable {
      if (const auto self = weak.lock()) self->take(socket.release(), peer, std::move(session));
    });
  };
  handshakes.begin(fd, std::move(take_later));
}

void Acceptor::take(int fd, const Peer& peer, std::unique_ptr<TlsSession> session) {
  UniqueFd held(fd);
  if (closed_) return;
  const int family = family_of(fd);
  if (family != AF_UNIX) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  Transport::Socket socket(io_.get_executor());
  boost::system::error_code error;
  socket.assign(boost::asio::generic::stream_protocol(family, 0), fd, error);
  if (error) return;
  held.release();
  taker_({Transport(std::move(socket), std::move(session)), peer});
}

}  // namespace fairlead::net
