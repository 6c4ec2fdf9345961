#include "net/http_listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace fairlead::net {

namespace {

constexpr int kBacklog = 1024;
constexpr std::string_view kUnixPrefix = "unix:";

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

template <typename T>
SocketAddress to_socket_address(const T& value, int family) {
  static_assert(sizeof(T) <= sizeof(SocketAddress::storage));
  SocketAddress address;
  std::memcpy(address.storage, &value, sizeof value);
  address.size = sizeof value;
  address.family = family;
  return address;
}

Result<SocketAddress> parse_unix(std::string_view path) {
  sockaddr_un value{};
  if (path.empty() || path.size() >= sizeof value.sun_path) {
    return fail(Errc::kInvalidArgument, "address: the socket path '{}' has {} bytes; 1 to {} are possible", path,
                path.size(), sizeof value.sun_path - 1);
  }
  value.sun_family = AF_UNIX;
  std::memcpy(value.sun_path, path.data(), path.size());
  return to_socket_address(value, AF_UNIX);
}

Result<SocketAddress> parse_tcp(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  const std::string_view digits = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return fail(Errc::kInvalidArgument, "address: '{}' has no port between 0 and 65535; write host:port", text);
  }
  std::string host(text.substr(0, colon));
  if (host == "localhost") host = "127.0.0.1";
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    sockaddr_in6 value{};
    value.sin6_family = AF_INET6;
    value.sin6_port = htons(port);
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &value.sin6_addr) == 1) {
      return to_socket_address(value, AF_INET6);
    }
  }
  sockaddr_in value{};
  value.sin_family = AF_INET;
  value.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &value.sin_addr) == 1) return to_socket_address(value, AF_INET);
  return fail(Errc::kInvalidArgument, "address: host '{}' is not an IPv4 address, an [IPv6] address or localhost",
              host);
}

const sockaddr* as_sockaddr(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(address.storage);
}

sockaddr_storage storage_of(const SocketAddress& address) {
  sockaddr_storage storage{};
  std::memcpy(&storage, address.storage, address.size);
  return storage;
}

std::string tcp_name(int fd) {
  sockaddr_in6 six{};
  socklen_t size = sizeof six;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&six), &size) != 0) return {};
  char text[INET6_ADDRSTRLEN] = {};
  if (six.sin6_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
    return fmt::format("[{}]:{}", text, ntohs(six.sin6_port));
  }
  sockaddr_in four{};
  std::memcpy(&four, &six, sizeof four);
  ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
  return fmt::format("{}:{}", text, ntohs(four.sin_port));
}

// Removes a socket file that nobody listens on any more.
Status remove_stale_socket(const SocketAddress& address, const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) {
    return fail(Errc::kConflict, "listen unix:{}: the path exists and is not a socket; remove it first", path);
  }
  FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), as_sockaddr(address), address.size) == 0 || errno == EAGAIN) {
    return fail(Errc::kConflict, "listen unix:{}: another process serves this socket", path);
  }
  ::unlink(path.c_str());
  return {};
}

}  // namespace

bool is_local(const sockaddr_storage& address) {
  if (address.ss_family == AF_UNIX) return true;
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(four.sin_addr.s_addr) >> 24) == 127;
  }
  if (address.ss_family != AF_INET6) return false;
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr) ||
         (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr) && six.sin6_addr.s6_addr[12] == 127);
}

bool is_local(std::string_view text) {
  const auto parsed = parse_socket_address(text);
  return parsed && is_local(storage_of(*parsed));
}

bool is_loopback_host(std::string_view host) {
  auto address = parse_tcp(host);
  if (!address) address = parse_tcp(fmt::format("{}:80", host));
  return address && is_local(storage_of(*address));
}

Result<SocketAddress> parse_socket_address(std::string_view address) {
  if (address.substr(0, kUnixPrefix.size()) == kUnixPrefix) return parse_unix(address.substr(kUnixPrefix.size()));
  return parse_tcp(address);
}

Result<SocketAddress> resolve_host(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return fail(Errc::kUnavailable, "cannot resolve host '{}': {}", host, ::gai_strerror(error));
  SocketAddress result;
  result.family = found->ai_family;
  result.size = std::min<unsigned>(found->ai_addrlen, sizeof result.storage);
  std::copy_n(reinterpret_cast<const char*>(found->ai_addr), result.size, result.storage);
  ::freeaddrinfo(found);
  return result;
}

Result<ListeningSocket> open_listener(std::string_view text) {
  auto address = parse_socket_address(text);
  if (!address) return fail(address.error());
  ListeningSocket listener;
  if (address->family == AF_UNIX) {
    listener.unix_path = std::string(text.substr(kUnixPrefix.size()));
    if (Status status = remove_stale_socket(*address, listener.unix_path); !status) return fail(status.error());
  }
  FileDescriptor fd(::socket(address->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (fd.get() < 0 || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), as_sockaddr(*address), address->size) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return fail(errno_error(errno, fmt::format("listen {}", text)));
  }
  listener.address = address->family == AF_UNIX ? std::string(text) : tcp_name(fd.get());
  listener.fd = fd.release();
  return listener;
}

}  // namespace fairlead::net
