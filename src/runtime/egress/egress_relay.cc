#include "runtime/egress/egress_relay.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "base/clock.h"

namespace fairlead {
namespace {

constexpr int kLookAtLateMs = 1000;
constexpr int kMostAtOnce = 32;  // connections that are taken before others have their turn

struct Place {
  IpAddress address;
  std::uint16_t port = 0;
  std::string text() const {
    return address.is_v4() ? fmt::format("{}:{}", address.text(), port) : fmt::format("[{}]:{}", address.text(), port);
  }
};

// Where the function wanted to.
std::optional<Place> wanted_by(int client) {
  sockaddr_storage where{};
  socklen_t size = sizeof where;
  if (::getsockname(client, reinterpret_cast<sockaddr*>(&where), &size) != 0) return std::nullopt;
  const auto address = IpAddress::of(reinterpret_cast<const sockaddr&>(where));
  if (!address) return std::nullopt;
  // Both families have the port at the same place.
  return Place{*address, ntohs(reinterpret_cast<const sockaddr_in&>(where).sin_port)};
}

void set_option(int socket, int level, int option) {
  const int on = 1;
  ::setsockopt(socket, level, option, &on, sizeof on);
}

// Under way, or there.
UniqueFd connect_to(const Place& place) {
  const bool is_v4 = place.address.is_v4();
  UniqueFd socket(::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(place.port);
  std::memcpy(&ipv4.sin_addr, place.address.bytes.data() + 12, 4);
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  ipv6.sin6_port = htons(place.port);
  std::memcpy(&ipv6.sin6_addr, place.address.bytes.data(), 16);
  const auto* const to = is_v4 ? reinterpret_cast<const sockaddr*>(&ipv4) : reinterpret_cast<const sockaddr*>(&ipv6);
  const socklen_t size = is_v4 ? sizeof ipv4 : sizeof ipv6;
  set_option(socket.get(), SOL_SOCKET, SO_KEEPALIVE);
  set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY);
  if (::connect(socket.get(), to, size) != 0 && errno != EINPROGRESS) return {};
  return socket;
}

}  // namespace

EgressRelay::EgressRelay(EgressRelayOptions options, MachineRoutes routes)
    : listeners_(std::move(options.sockets.connections)),
      log_(options.log),
      gate_(std::move(options.terms)),
      routes_(std::move(routes)),
      names_(std::move(options.sockets.questions), std::move(options.look_up), gate_, routes_) {}

Result<std::unique_ptr<EgressRelay>> EgressRelay::create(EgressRelayOptions options) {
  Result<MachineRoutes> routes = MachineRoutes::open();
  if (!routes) return fail(routes.error());
  return std::unique_ptr<EgressRelay>(new EgressRelay(std::move(options), *std::move(routes)));
}

void EgressRelay::run(int stop) {
  std::vector<pollfd> polled;
  while (true) {
    polled.clear();
    polled.push_back({stop, POLLIN, 0});
    polled.push_back({names_.found(), POLLIN, 0});
    for (const UniqueFd& socket : names_.sockets()) polled.push_back({socket.get(), POLLIN, 0});
    const std::size_t first_listener = polled.size();
    const bool has_room = tunnels_.size() < kMostConnections;
    for (const UniqueFd& listener : listeners_) polled.push_back({has_room ? listener.get() : -1, POLLIN, 0});
    const std::size_t first_tunnel = polled.size();
    for (const Tunnel& tunnel : tunnels_) {
      polled.push_back({tunnel.client(), tunnel.client_events(), 0});
      polled.push_back({tunnel.server(), tunnel.server_events(), 0});
    }
    const int count = ::poll(polled.data(), polled.size(), tunnels_.empty() ? -1 : kLookAtLateMs);
    if (count < 0) continue;
    const Instant now = monotonic_now();
    if (polled[0].revents != 0) return;
    serve_tunnels(polled, first_tunnel, now);
    if (polled[1].revents != 0) names_.answer_found(now);
    for (std::size_t i = 2; i < first_listener; ++i) {
      if (polled[i].revents != 0) names_.read_questions(polled[i].fd, now);
    }
    for (std::size_t i = first_listener; i < first_tunnel; ++i) {
      if (polled[i].revents != 0) accept_at(polled[i].fd, now);
    }
  }
}

void EgressRelay::serve_tunnels(const std::vector<pollfd>& ready, std::size_t first, Instant now) {
  for (auto tunnel = tunnels_.begin(); tunnel != tunnels_.end(); first += 2) {
    const bool goes_on = tunnel->serve(ready[first].revents, ready[first + 1].revents, now);
    tunnel = goes_on && !tunnel->is_late(now) ? std::next(tunnel) : tunnels_.erase(tunnel);
  }
}

void EgressRelay::accept_at(int listener, Instant now) {
  for (int left = kMostAtOnce; left > 0 && tunnels_.size() < kMostConnections; --left) {
    UniqueFd client(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) return;
    connect_on(std::move(client), now);
  }
}

void EgressRelay::connect_on(UniqueFd client, Instant now) {
  const auto place = wanted_by(client.get());
  if (!place) return reset_at_close(client.get());
  const IpAddress end = behind_translation(place->address);
  const bool is_this_machine =
      routes_.to(end) == RouteKind::kThisMachine || routes_.to(place->address) == RouteKind::kThisMachine;
  const std::string refusal = gate_.refusal(place->address, place->port, is_this_machine, now);
  if (!refusal.empty()) {
    say_refusal(place->text(), refusal);
    return reset_at_close(client.get());
  }
  UniqueFd server = connect_to(*place);
  if (!server) return reset_at_close(client.get());
  set_option(client.get(), IPPROTO_TCP, TCP_NODELAY);
  tunnels_.emplace_back(std::move(client), std::move(server), now);
}

// The log is the function's own output: where nobody takes it, or the function floods it, nothing is said.
void EgressRelay::say_refusal(const std::string& where, const std::string& why) {
  if (log_ < 0 || said_.size() >= kMostSaid || !said_.insert(where).second) return;
  pollfd writable{log_, POLLOUT, 0};
  if (::poll(&writable, 1, 0) <= 0 || (writable.revents & POLLOUT) == 0) return;
  const std::string line = fmt::format("fairlead: a connection to {} is refused: {}\n", where, why);
  (void)!::write(log_, line.data(), line.size());
}

}  // namespace fairlead
