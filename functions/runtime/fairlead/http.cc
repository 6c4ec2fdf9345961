#include "fairlead/http.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace fairlead {
namespace {

constexpr std::size_t kInitialBuffer = 64 * 1024;
constexpr std::size_t kMaxHeaderBytes = 64 * 1024;
constexpr std::size_t kMaxBodyBytes = std::size_t{1} << 30;

[[noreturn]] void lost(const std::string& what) {
  throw ConnectionLost(what + ": " + std::strerror(errno));
}

[[noreturn]] void protocol_error(const std::string& what) {
  throw Error("Runtime.Protocol", "Runtime API answer not understood: " + what);
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

int connect_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw Error("Runtime.Configuration", "FAIRLEAD_RUNTIME_SOCKET is " + std::to_string(path.size()) +
                                             " bytes long; a socket path has at most " +
                                             std::to_string(sizeof address.sun_path - 1));
  }
  path.copy(address.sun_path, path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) lost("socket");
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  lost("connect to " + path);
}

int connect_tcp(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    throw ConnectionLost("look up " + host + ":" + port + ": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const int fd = ::socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    if (fd < 0) continue;
    if (::connect(fd, address->ai_addr, address->ai_addrlen) == 0) {
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return fd;
    }
    const int error = errno;
    ::close(fd);
    errno = error;
  }
  lost("connect to " + host + ":" + port);
}

int parse_status(std::string_view head) {
  int status = 0;
  const bool http = head.starts_with("HTTP/1.1 ") || head.starts_with("HTTP/1.0 ");
  if (!http || std::from_chars(head.data() + 9, head.data() + head.size(), status).ec != std::errc()) {
    protocol_error("status line \"" + std::string(head.substr(0, head.find('\r'))) + "\"");
  }
  return status;
}

std::size_t parse_size(std::string_view digits, int base, const char* what) {
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size, base);
  if (error != std::errc() || end == digits.data() || size > kMaxBodyBytes) {
    protocol_error(std::string(what) + " \"" + std::string(digits) + "\"");
  }
  return size;
}

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const {
  std::string_view rest = headers;
  while (!rest.empty()) {
    const std::size_t line_end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, line_end);
    rest.remove_prefix(line_end == std::string_view::npos ? rest.size() : line_end + 2);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !equal_ignoring_case(line.substr(0, colon), name)) continue;
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    return value;
  }
  return {};
}

HttpConnection::HttpConnection(const Endpoint& endpoint) : buffer_(kInitialBuffer) {
  fd_ = endpoint.socket_path.empty() ? connect_tcp(endpoint.host, endpoint.port) : connect_unix(endpoint.socket_path);
}

HttpConnection::~HttpConnection() {
  ::close(fd_);
}

void HttpConnection::write(std::span<const iovec> parts) {
  std::vector<iovec> left(parts.begin(), parts.end());
  std::size_t first = 0;
  while (first < left.size()) {
    msghdr message{};
    message.msg_iov = left.data() + first;
    message.msg_iovlen = left.size() - first;
    ssize_t sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      lost("send");
    }
    for (; first < left.size() && static_cast<std::size_t>(sent) >= left[first].iov_len; ++first) {
      sent -= static_cast<ssize_t>(left[first].iov_len);
    }
    if (first < left.size()) {
      left[first].iov_base = static_cast<char*>(left[first].iov_base) + sent;
      left[first].iov_len -= static_cast<std::size_t>(sent);
    }
  }
}

HttpResponse HttpConnection::read() {
  begin_ += consumed_;
  consumed_ = 0;
  if (begin_ == end_) begin_ = end_ = 0;

  const std::size_t header_size = find_end_of_headers();
  HttpResponse response;
  response.status = parse_status(unread());
  const auto parse_headers = [&] {
    const std::string_view head = unread().substr(0, header_size - 2);
    const std::size_t first_line = head.find("\r\n") + 2;
    response.headers = head.substr(std::min(first_line, head.size()));
  };
  parse_headers();
  if (equal_ignoring_case(response.header("Transfer-Encoding"), "chunked")) {
    read_chunked(header_size);
    response.body = chunked_body_;
  } else {
    const std::string_view length = response.header("Content-Length");
    response.body = read_sized(header_size, length.empty() ? 0 : parse_size(length, 10, "Content-Length"));
  }
  parse_headers();  // receiving the body may have moved the buffer
  return response;
}

// Makes at least `at_least` unread bytes available.
void HttpConnection::receive(std::size_t at_least) {
  while (end_ - begin_ < at_least) {
    if (begin_ > 0 && buffer_.size() - begin_ < at_least) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (buffer_.size() - begin_ < at_least) buffer_.resize(std::max(at_least, 2 * buffer_.size()));
    const ssize_t got = ::recv(fd_, buffer_.data() + end_, buffer_.size() - end_, 0);
    if (got > 0) {
      end_ += static_cast<std::size_t>(got);
    } else if (got == 0) {
      throw ConnectionLost("closed by the Runtime API");
    } else if (errno != EINTR) {
      lost("receive");
    }
  }
}

// The size of the status line and headers with the empty line that ends them.
std::size_t HttpConnection::find_end_of_headers() {
  std::size_t searched = 0;
  while (true) {
    const std::size_t end = unread().find("\r\n\r\n", searched);
    if (end != std::string_view::npos) return end + 4;
    const std::size_t have = unread().size();
    if (have > kMaxHeaderBytes) protocol_error("headers above " + std::to_string(kMaxHeaderBytes) + " bytes");
    searched = have < 3 ? 0 : have - 3;
    receive(have + 1);
  }
}

std::string_view HttpConnection::read_sized(std::size_t header_size, std::size_t body_size) {
  consumed_ = header_size + body_size;
  receive(consumed_);
  return unread().substr(header_size, body_size);
}

void HttpConnection::read_chunked(std::size_t header_size) {
  chunked_body_.clear();
  std::size_t at = header_size;
  while (true) {
    const std::string_view line = chunk_line(at);
    const std::size_t size = parse_size(line.substr(0, line.find(';')), 16, "chunk size");
    if (size == 0) break;
    receive(at + size + 2);
    chunked_body_.append(unread().substr(at, size));
    if (chunked_body_.size() > kMaxBodyBytes) protocol_error("body above 1 GiB");
    at += size + 2;
  }
  while (!chunk_line(at).empty()) {  // trailers carry nothing we use
  }
  consumed_ = at;
}

// The line at `at` without its CRLF; moves `at` behind it.
std::string_view HttpConnection::chunk_line(std::size_t& at) {
  std::size_t end = 0;
  while ((end = unread().find("\r\n", at)) == std::string_view::npos) receive(unread().size() + 1);
  const std::string_view line = unread().substr(at, end - at);
  at = end + 2;
  return line;
}

}  // namespace fairlead
