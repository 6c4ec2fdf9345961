#include "net/http_client.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "net/http_listener.h"
#include "net/http_request.h"
#include "net/http_response_reader.h"

namespace fairlead::net {

namespace {

constexpr std::size_t kReadBytes = 64 << 10;

bool speaks_tls(std::string_view address) {
  return address.starts_with("https://");
}

std::string_view without_scheme(std::string_view address) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (address.starts_with(scheme)) address.remove_prefix(scheme.size());
  }
  while (!address.empty() && address.back() == '/') address.remove_suffix(1);
  return address;
}

// "HOST:PORT" or "[HOST]:PORT" without the port.
std::string host_of(std::string_view address) {
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return std::string(host);
}

// The address as it stands, or the first one its host name resolves to.
Result<SocketAddress> resolve(std::string_view address) {
  auto literal = parse_socket_address(address);
  if (literal || address.substr(0, 5) == "unix:") return literal;
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return literal;
  auto resolved = resolve_host(std::string(address.substr(0, colon)), std::string(address.substr(colon + 1)));
  if (!resolved) return fail(Errc::kInvalidArgument, "address: {}", resolved.error().message);
  return resolved;
}

}  // namespace

std::string_view ClientResponse::header(std::string_view name) const {
  for (const Header& header : headers) {
    if (equals_ignoring_case(header.name, name)) return header.value;
  }
  return {};
}

std::string percent_encode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                          c == '.' || c == '_' || c == '~';
    if (is_plain) {
      out.push_back(c);
    } else {
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return out;
}

class HttpClient::Impl {
 public:
  Impl(const std::string& address, HttpClientOptions options)
      : address_(without_scheme(address)),
        speaks_tls_(speaks_tls(address)),
        options_(std::move(options)),
        buffer_(kReadBytes) {}
  ~Impl() { disconnect(); }

  Result<ClientResponse> send(const ClientRequest& request, const TakePart& take) {
    if (fd_ >= 0 && is_stale()) disconnect();
    if (fd_ < 0) {
      if (Status status = connect(); !status) return fail(status.error());
    }
    deadline_ = monotonic_now() + options_.timeout;
    auto response = exchange(request, take);
    if (!response) disconnect();
    return response;
  }

 private:
  void disconnect() {
    session_.reset();
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  // Between requests nothing may arrive but the end of the connection, and a session's tickets.
  bool is_stale() const {
    if (session_) return is_stale_session();
    pollfd waiting{fd_, POLLIN, 0};
    return ::poll(&waiting, 1, 0) != 0;
  }

  Status connect() {
    auto address = resolve(address_);
    if (!address) return fail(address.error());
    fd_ = ::socket(address->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return fail(errno_error(errno, "socket"));
    const int on = 1;
    if (address->family != AF_UNIX) ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    deadline_ = monotonic_now() + options_.connect_timeout;
    int error = 0;
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(address->storage), address->size) != 0) error = errno;
    if (error == EINPROGRESS) {
      if (Status status = wait(POLLOUT); !status) return abandon(status.error());
      socklen_t size = sizeof error;
      ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) return speaks_tls_ ? secure() : Status();
    return abandon({Errc::kUnavailable, errno_error(error, fmt::format("connect to {}", address_)).message});
  }

  bool is_stale_session() const {
    char byte = 0;
    return session_->read(&byte, 1).step != TlsSession::Step::kNeedsRead;
  }

  Status secure() {
    if (!trust_) {
      auto loaded = TlsTrust::load(options_.trust);
      if (!loaded) return abandon(loaded.error());
      trust_.emplace(*std::move(loaded));
    }
    auto session = trust_->connect(fd_, host_of(address_));
    if (!session) return abandon(session.error());
    session_ = *std::move(session);
    for (;;) {
      const TlsSession::Step step = session_->handshake();
      if (step == TlsSession::Step::kDone) return {};
      if (step == TlsSession::Step::kFailed || step == TlsSession::Step::kEnd) {
        return abandon({Errc::kUnauthenticated, fmt::format("TLS with {}: {}", address_, session_->last_error())});
      }
      if (Status ready = wait(events_for(step)); !ready) return abandon(ready.error());
    }
  }

  static short events_for(TlsSession::Step step) { return step == TlsSession::Step::kNeedsWrite ? POLLOUT : POLLIN; }

  Status abandon(Error error) {
    disconnect();
    return fail(std::move(error));
  }

  Status wait(short events) {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - monotonic_now());
      pollfd waiting{fd_, events, 0};
      const int ready =
          left.count() <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(std::min<long>(left.count(), 1 << 30)));
      if (ready > 0) return {};
      if (ready == 0) return fail(Errc::kDeadlineExceeded, "{}: no answer in time", address_);
      if (errno != EINTR) return fail(errno_error(errno, "poll"));
    }
  }

  Result<ClientResponse> exchange(const ClientRequest& request, const TakePart& take) {
    Status sent = write_all(head_of(request));
    if (sent) sent = write_all(request.body);
    // A server may refuse a request before it has read all of it; its answer is worth more than the broken pipe.
    if (!sent && sent.error().code != Errc::kIo) return fail(sent.error());
    auto response = read_response(request.method == "HEAD", take);
    if (!response && !sent) return fail(sent.error());
    if (!sent) disconnect();
    return response;
  }

  std::string head_of(const ClientRequest& request) const {
    const bool is_unix = address_.starts_with("unix:");
    std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.target,
                                   is_unix ? std::string("localhost") : address_);
    for (const Header& header : request.headers) head += fmt::format("{}: {}\r\n", header.name, header.value);
    if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
      head += fmt::format("Content-Length: {}\r\n", request.body.size());
    }
    return head + "\r\n";
  }

  Status write_all(std::string_view data) {
    if (session_) return write_all_secured(data);
    while (!data.empty()) {
      const ssize_t count = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        data.remove_prefix(static_cast<std::size_t>(count));
      } else if (errno == EAGAIN) {
        if (Status status = wait(POLLOUT); !status) return status;
      } else if (errno != EINTR) {
        return fail(Errc::kIo, "{}", errno_error(errno, fmt::format("send to {}", address_)).message);
      }
    }
    return {};
  }

  Status write_all_secured(std::string_view data) {
    while (!data.empty()) {
      const TlsSession::Moved moved = session_->write(data);
      if (moved.step == TlsSession::Step::kFailed || moved.step == TlsSession::Step::kEnd) return fail(broken());
      if (moved.step != TlsSession::Step::kDone) {
        if (Status ready = wait(events_for(moved.step)); !ready) return ready;
      }
      data.remove_prefix(moved.count);
    }
    return {};
  }

  Error broken() const { return {Errc::kIo, fmt::format("TLS with {}: {}", address_, session_->last_error())}; }

  // Reads until the answer is complete. Interim answers (1xx) are skipped.
  Result<ClientResponse> read_response(bool is_head, const TakePart& take) {
    ClientResponse response;
    ResponseReader reader(options_.response_bytes);
    reader.begin(response, is_head);
    std::size_t unread = 0;
    for (;;) {
      const ResponseReader::Step step = reader.feed({buffer_.data(), unread});
      if (step.progress == ResponseReader::Progress::kFailed) {
        return fail(step.error.code, "{}: {}", address_, step.error.message);
      }
      std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(step.consumed),
                buffer_.begin() + static_cast<std::ptrdiff_t>(unread), buffer_.begin());
      unread -= step.consumed;
      if (take && !response.body.empty()) take(response, std::exchange(response.body, {}));
      if (step.progress == ResponseReader::Progress::kDone) break;
      auto count = read_some(unread);
      if (!count) return fail(count.error());
      if (*count == 0) {
        if (reader.ends_here()) break;
        return fail(Errc::kIo, "{}: the connection ended before the answer did", address_);
      }
      unread += *count;
    }
    if (!reader.keeps_alive() || unread > 0) disconnect();
    return response;
  }

  Result<std::size_t> read_some(std::size_t offset) {
    if (offset == buffer_.size()) return fail(Errc::kCorrupt, "{}: a line of the answer is too long", address_);
    if (session_) return read_secured(offset);
    for (;;) {
      const ssize_t count = ::recv(fd_, buffer_.data() + offset, buffer_.size() - offset, 0);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno == EAGAIN) {
        if (Status status = wait(POLLIN); !status) return fail(status.error());
      } else if (errno != EINTR) {
        return fail(Errc::kIo, "{}", errno_error(errno, fmt::format("receive from {}", address_)).message);
      }
    }
  }

  Result<std::size_t> read_secured(std::size_t offset) {
    for (;;) {
      const TlsSession::Moved moved = session_->read(buffer_.data() + offset, buffer_.size() - offset);
      if (moved.step == TlsSession::Step::kDone) return moved.count;
      if (moved.step == TlsSession::Step::kEnd) return std::size_t{0};
      if (moved.step == TlsSession::Step::kFailed) return fail(broken());
      if (Status ready = wait(events_for(moved.step)); !ready) return fail(ready.error());
    }
  }

  const std::string address_;
  const bool speaks_tls_;
  const HttpClientOptions options_;
  std::vector<char> buffer_;
  int fd_ = -1;
  std::optional<TlsTrust> trust_;        // read at the first handshake
  std::unique_ptr<TlsSession> session_;  // of fd_; null: in the clear
  Instant deadline_{};
};

HttpClient::HttpClient(std::string address, HttpClientOptions options)
    : impl_(std::make_unique<Impl>(address, std::move(options))) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&& other) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&& other) noexcept = default;

Result<ClientResponse> HttpClient::send(const ClientRequest& request) {
  return impl_->send(request, nullptr);
}

Result<ClientResponse> HttpClient::stream(const ClientRequest& request, const TakePart& take) {
  return impl_->send(request, take);
}

}  // namespace fairlead::net
