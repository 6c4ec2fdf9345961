#include "runtime/egress/tunnel.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace fairlead {
namespace {

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

constexpr short kBroken = POLLERR | POLLNVAL;

}  // namespace

void reset_at_close(int socket) {
  const linger at_once{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

Tunnel::Tunnel(UniqueFd client, UniqueFd server, Instant now)
    : client_(std::move(client)), server_(std::move(server)), last_(now) {}

short Tunnel::client_events() const {
  int events = 0;
  if (!is_connecting_ && !up_.has_ended && up_.held.empty()) events |= POLLIN;
  if (!down_.held.empty()) events |= POLLOUT;
  return static_cast<short>(events);
}

short Tunnel::server_events() const {
  int events = 0;
  if (is_connecting_ || !up_.held.empty()) events |= POLLOUT;
  if (!is_connecting_ && !down_.has_ended && down_.held.empty()) events |= POLLIN;
  return static_cast<short>(events);
}

bool Tunnel::finish_connect() {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(server_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
    reset_at_close(client_.get());
    return false;
  }
  is_connecting_ = false;
  return true;
}

bool Tunnel::push(Flow& flow, int to, Instant now) {
  while (!flow.held.empty()) {
    const ssize_t sent = ::send(to, flow.held.data(), flow.held.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return would_block();
    flow.held.erase(0, static_cast<std::size_t>(sent));
    last_ = now;
  }
  if (flow.has_ended && !flow.is_done) {
    ::shutdown(to, SHUT_WR);
    flow.is_done = true;
  }
  return true;
}

bool Tunnel::pull(Flow& flow, int from, int to, Instant now) {
  std::array<char, kMostHeldBytes> buffer;
  const ssize_t got = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0) return would_block();
  last_ = now;
  flow.has_ended = got == 0;
  flow.held.assign(buffer.data(), static_cast<std::size_t>(got));
  const bool goes_on = push(flow, to, now);
  if (flow.held.empty()) flow.held.shrink_to_fit();
  return goes_on;
}

bool Tunnel::serve(short client_ready, short server_ready, Instant now) {
  const auto broke = [this] {
    reset_at_close(client_.get());
    reset_at_close(server_.get());
    return false;
  };
  if (is_connecting_) {
    if ((client_ready & (kBroken | POLLHUP)) != 0) return broke();
    if (server_ready == 0) return true;
    return finish_connect();
  }
  const int client = client_.get(), server = server_.get();
  if ((client_ready & POLLOUT) != 0 && !push(down_, client, now)) return broke();
  if ((server_ready & POLLOUT) != 0 && !push(up_, server, now)) return broke();
  const bool reads_client = !up_.has_ended && up_.held.empty(), reads_server = !down_.has_ended && down_.held.empty();
  if (reads_client && client_ready != 0 && !pull(up_, client, server, now)) return broke();
  if (reads_server && server_ready != 0 && !pull(down_, server, client, now)) return broke();
  // Neither end can be waited for any more, and nothing was read that said so.
  if (!reads_client && (client_ready & (kBroken | POLLHUP)) != 0) return broke();
  if (!reads_server && (server_ready & (kBroken | POLLHUP)) != 0) return broke();
  return !(up_.is_done && down_.is_done);
}

bool Tunnel::is_late(Instant now) const {
  if (is_connecting_) return now - last_ > kConnectPatience;
  return (up_.has_ended || down_.has_ended) && now - last_ > kHalfClosedPatience;
}

}  // namespace fairlead
