#include "runtime/jail/egress_proxy.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <memory>
#include <thread>

#include "base/base64.h"

namespace fairlead {
namespace {

// RFC 3986, of the user information of a URL. The error has nothing of it.
Result<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) {
      return fail(Errc::kInvalidArgument,
                  "HTTPS_PROXY: its user or password has a % that two hexadecimal digits do "
                  "not follow; %25 is the sign itself");
    }
    decoded += static_cast<char>(value);
    i += 2;
  }
  return decoded;
}

constexpr std::size_t kMostHeadBytes = 16 << 10;
constexpr int kMostConnections = 32;
constexpr int kHeadTimeoutMs = 10'000, kConnectTimeoutMs = 20'000, kIdleTimeoutMs = 300'000;
constexpr std::string_view kEndOfHead = "\r\n\r\n";

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

std::string text_of(const sockaddr& address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(&address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

bool write_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      pollfd writable{socket, POLLOUT, 0};
      if (::poll(&writable, 1, kIdleTimeoutMs) <= 0) return false;
      continue;
    }
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Up to the first empty line, and what came behind it. Empty: the other end has gone, was too slow, or said too much.
std::string read_head(int socket) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() < kMostHeadBytes) {
    pollfd readable{socket, POLLIN, 0};
    if (::poll(&readable, 1, kHeadTimeoutMs) <= 0) return {};
    const ssize_t size = ::read(socket, buffer.data(), buffer.size());
    if (size <= 0) return {};
    text.append(buffer.data(), static_cast<std::size_t>(size));
    if (text.find(kEndOfHead) != std::string::npos) return text;
  }
  return {};
}

Result<Addresses> resolve(const HostPort& target) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(target.host.c_str(), std::to_string(target.port).c_str(), &hints, &found);
  Addresses addresses(found, &::freeaddrinfo);
  if (error != 0 || found == nullptr) {
    return fail(Errc::kNotFound, "no such host {}: {}", target.host, ::gai_strerror(error));
  }
  return addresses;
}

Result<UniqueFd> connect_to(const addrinfo& address) {
  UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail(errno_error(errno, "socket"));
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    pollfd writable{socket.get(), POLLOUT, 0};
    if (errno != EINPROGRESS) return fail(errno_error(errno, "connect"));
    if (::poll(&writable, 1, kConnectTimeoutMs) <= 0) return fail(Errc::kDeadlineExceeded, "i/o timeout");
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return fail(errno_error(error, "connect"));
  }
  return socket;
}

Result<UniqueFd> connect_to_any(const HostPort& target, const Addresses& addresses) {
  Error last{Errc::kUnavailable, "it has no address"};
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Result<UniqueFd> socket = connect_to(*address);
    if (socket) return socket;
    last = socket.error();
  }
  return fail(Errc::kUnavailable, "{}:{} does not answer: {}", target.host, target.port, last.message);
}

class Proxy {
 public:
  explicit Proxy(EgressOptions options) : options_(std::move(options)) {}

  [[noreturn]] void run() {
    while (true) {
      pollfd listeners[] = {{options_.proxy.get(), POLLIN, 0}, {options_.registry_listener.get(), POLLIN, 0}};
      const nfds_t count = options_.registry_listener ? 2 : 1;
      if (::poll(listeners, count, -1) < 0 && errno != EINTR) ::_exit(1);
      if (listeners[0].revents != 0) accept_at(options_.proxy.get(), false);
      if (count == 2 && listeners[1].revents != 0) accept_at(options_.registry_listener.get(), true);
    }
  }

 private:
  void accept_at(int listener, bool is_registry) {
    UniqueFd client(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!client || connections_.load() >= kMostConnections) return;
    ++connections_;
    std::thread([this, is_registry, client = std::move(client)] {
      if (is_registry) {
        serve_registry(client.get());
      } else {
        serve_proxy(client.get());
      }
      --connections_;
    }).detach();
  }

  void serve_registry(int client) {
    Result<UniqueFd> server = open(options_.registry);
    if (server) relay(client, server->get());
  }

  void serve_proxy(int client) {
    const std::string head = read_head(client);
    if (head.empty()) return;
    const Result<ProxyRequest> request = parse_proxy_request(head);
    if (!request) return refuse(client, 400, request.error());
    Result<UniqueFd> server = open(request->target);
    if (!server) return refuse(client, server.error().code == Errc::kForbidden ? 403 : 502, server.error());
    if (request->is_tunnel) {
      if (!write_all(client, "HTTP/1.1 200 Connected\r\n\r\n")) return;
      if (!write_all(server->get(), std::string_view(head).substr(head.find(kEndOfHead) + kEndOfHead.size()))) return;
    } else if (!write_all(server->get(), head)) {
      return;
    }
    relay(client, server->get());
  }

  static void refuse(int client, int status, const Error& error) {
    std::string reason = error.message;
    std::replace_if(
        reason.begin(), reason.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, ' ');
    write_all(client, fmt::format("HTTP/1.1 {} {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status, reason));
  }

  Result<UniqueFd> open(const HostPort& target) const {
    if (!options_.rules.allows(target)) {
      return fail(Errc::kForbidden, "{}:{} is no registry of this node; {}", target.host, target.port,
                  RegistryRules::advice(target));
    }
    const Result<Addresses> addresses = resolve(target);
    // Where the host's own proxy does what leaves the machine, it may be the only one that knows names.
    if (!addresses && options_.upstream.empty()) return fail(addresses.error());
    if (addresses && options_.rules.needs_global_addresses(target)) {
      for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
        if (is_global(*address->ai_addr)) continue;
        return fail(Errc::kForbidden, "{} has the address {}, which is not public; {}", target.host,
                    text_of(*address->ai_addr, address->ai_addrlen), RegistryRules::advice(target));
      }
    }
    const bool is_listed = !options_.rules.needs_global_addresses(target);
    if (options_.upstream.empty() || (is_listed && addresses)) return connect_to_any(target, *addresses);
    return open_through_upstream(target);
  }

  Result<UniqueFd> open_through_upstream(const HostPort& target) const {
    const Result<UpstreamProxy> upstream = parse_upstream_proxy(options_.upstream);
    if (!upstream) return fail(upstream.error());
    std::string credential;
    if (!upstream->userinfo.empty()) {
      credential = "Proxy-Authorization: Basic " + base64_encode(upstream->userinfo) + "\r\n";
    }
    const HostPort& proxy = upstream->address;
    const Result<Addresses> addresses = resolve(proxy);
    if (!addresses) return fail(addresses.error());
    Result<UniqueFd> socket = connect_to_any(proxy, *addresses);
    if (!socket) return socket;
    const std::string name = target.host.find(':') == std::string::npos ? target.host : "[" + target.host + "]";
    write_all(socket->get(),
              fmt::format("CONNECT {0}:{1} HTTP/1.1\r\nHost: {0}:{1}\r\n{2}\r\n", name, target.port, credential));
    const std::string answer = read_head(socket->get());
    if (answer.starts_with("HTTP/1.") && answer.substr(std::min<std::size_t>(answer.size(), 8), 4) == " 200") {
      return socket;
    }
    return fail(Errc::kUnavailable, "the proxy {} does not connect to {}:{}: {}", proxy.host, target.host, target.port,
                answer.substr(0, answer.find('\r')));
  }

  // Both ways until one of them has ended and the other has nothing more to say.
  void relay(int client, int server) {
    std::array<char, 64 << 10> buffer{};
    const int from[] = {client, server}, to[] = {server, client};
    bool is_open[] = {true, true};
    while (is_open[0] || is_open[1]) {
      pollfd ends[] = {{is_open[0] ? client : -1, POLLIN, 0}, {is_open[1] ? server : -1, POLLIN, 0}};
      if (::poll(ends, 2, kIdleTimeoutMs) <= 0) return;
      for (int way = 0; way < 2; ++way) {
        if (ends[way].revents == 0) continue;
        const ssize_t size = ::recv(from[way], buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (size <= 0) {
          is_open[way] = false;
          ::shutdown(to[way], SHUT_WR);
          continue;
        }
        if (way == 1 && !may_pass(static_cast<std::uint64_t>(size))) return;
        if (!write_all(to[way], {buffer.data(), static_cast<std::size_t>(size)})) return;
      }
    }
  }

  bool may_pass(std::uint64_t bytes) {
    return options_.most_bytes == 0 || passed_.fetch_add(bytes) + bytes <= options_.most_bytes;
  }

  const EgressOptions options_;
  std::atomic<int> connections_{0};
  std::atomic<std::uint64_t> passed_{0};
};

}  // namespace

Result<ProxyRequest> parse_proxy_request(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || last <= first) return fail(Errc::kInvalidArgument, "no HTTP request");
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  constexpr std::string_view kPlain = "http://";
  ProxyRequest request{.target = {}, .is_tunnel = method == "CONNECT"};
  if (!request.is_tunnel) {
    if (!target.starts_with(kPlain)) return fail(Errc::kInvalidArgument, "neither CONNECT nor an http URL");
    target = target.substr(kPlain.size());
    target = target.substr(0, target.find_first_of("/?#"));
    if (const std::size_t at = target.rfind('@'); at != std::string_view::npos) target.remove_prefix(at + 1);
  }
  request.target = split_host_port(target);
  const bool names_port = target.find(':', target.starts_with('[') ? target.find(']') : 0) != std::string_view::npos;
  if (!request.is_tunnel && !names_port) request.target.port = 80;
  // What is written into another proxy's request, if there is one.
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
  };
  const std::string& host = request.target.host;
  if (host.empty() || request.target.port == 0 || !std::all_of(host.begin(), host.end(), is_plain)) {
    return fail(Errc::kInvalidArgument, "'{}' is no HOST:PORT", target.substr(0, 256));
  }
  return request;
}

Result<UpstreamProxy> parse_upstream_proxy(std::string_view url) {
  if (const std::size_t scheme = url.find("://"); scheme != std::string_view::npos) {
    if (url.substr(0, scheme) != "http") {
      return fail(Errc::kUnavailable, "HTTPS_PROXY is of the kind {}; one that begins with http:// is possible",
                  url.substr(0, scheme));
    }
    url.remove_prefix(scheme + 3);
  }
  UpstreamProxy proxy;
  // A password may have a '/' that its writer did not escape: the last '@' comes first.
  if (const std::size_t at = url.rfind('@'); at != std::string_view::npos) {
    auto userinfo = percent_decoded(url.substr(0, at));
    if (!userinfo) return fail(userinfo.error());
    proxy.userinfo = *std::move(userinfo);
    url.remove_prefix(at + 1);
  }
  url = url.substr(0, url.find('/'));
  const bool has_port = url.find(':', url.starts_with('[') ? std::min(url.find(']'), url.size()) : 0) != url.npos;
  proxy.address = split_host_port(url);
  if (!has_port) proxy.address.port = 80;
  if (proxy.address.host.empty() || proxy.address.port == 0) {
    return fail(Errc::kInvalidArgument, "HTTPS_PROXY has the address '{}'; http://HOST:PORT is possible", url);
  }
  return proxy;
}

void run_egress_proxy(EgressOptions options) {
  Proxy(std::move(options)).run();
}

}  // namespace fairlead
