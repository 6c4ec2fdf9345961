#include "bench/http_load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "net/tls.h"

namespace fairlead::bench {
namespace {

struct Connection {
  int fd = -1;
  std::unique_ptr<net::TlsSession> session;  // null: in the clear
  std::string received;
  Instant sent;
};

class Load {
 public:
  explicit Load(const LoadOptions& options) : options_(options) {
    for (const std::string& path : options.paths) {
      requests_.push_back(fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n{}", path,
                                      more_headers(), options.body.size(), options.body));
    }
    result_.latencies.reserve(options.requests);
  }
  ~Load() {
    for (const Connection& connection : connections_) close(connection.fd);
    if (epoll_ >= 0) close(epoll_);
  }

  Result<LoadResult> run() {
    if (Status opened = open(); !opened) return fail(opened.error());
    for (Connection& connection : connections_) {
      if (Status sent = send_next(connection); !sent) return fail(sent.error());
    }
    epoll_event events[64];
    while (result_.latencies.size() < options_.requests) {
      const int ready = epoll_wait(epoll_, events, 64, 10'000);
      if (ready == 0) return fail(Errc::kDeadlineExceeded, "no answer within 10 s");
      for (int i = 0; i < ready; ++i) {
        if (Status read = on_readable(connections_[events[i].data.u64]); !read) return fail(read.error());
      }
    }
    result_.elapsed = last_answer_ - measured_from_;
    return std::move(result_);
  }

 private:
  std::string more_headers() const {
    std::string text;
    for (const std::string& header : options_.headers) text += header + "\r\n";
    return text;
  }

  Status secure(Connection& connection) {
    auto session = trust_->connect(connection.fd, "localhost");
    if (!session) return fail(session.error());
    connection.session = *std::move(session);
    for (;;) {
      const auto step = connection.session->handshake();
      if (step == net::TlsSession::Step::kDone) return {};
      if (step == net::TlsSession::Step::kFailed) return fail(Errc::kIo, "TLS: {}", connection.session->last_error());
      pollfd ready{connection.fd, POLLIN, 0};
      poll(&ready, 1, 10'000);
    }
  }

  Status open() {
    if (!options_.tls_ca.empty()) {
      auto trust = net::TlsTrust::load({.ca = options_.tls_ca});
      if (!trust) return fail(trust.error());
      trust_.emplace(*std::move(trust));
    }
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options_.port);
    inet_pton(AF_INET, options_.host.c_str(), &address.sin_addr);
    for (std::size_t i = 0; i < options_.connections; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      connections_.push_back({.fd = fd});
      if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
        return fail(errno_error(errno, fmt::format("connect {}:{}", options_.host, options_.port)));
      }
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      if (trust_) {
        if (Status secured = secure(connections_.back()); !secured) return secured;
      }
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    }
    return {};
  }

  Status send_next(Connection& connection) {
    const std::string& request = requests_[next_request_++ % requests_.size()];
    connection.sent = monotonic_now();
    if (answers_ == options_.warm_up) measured_from_ = connection.sent;
    if (connection.session) {
      if (connection.session->write(request).count == request.size()) return {};
      return fail(Errc::kIo, "TLS: {}", connection.session->last_error());
    }
    if (send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
      return fail(errno_error(errno, "send"));
    }
    return {};
  }

  Status on_readable(Connection& connection) {
    char buffer[16 << 10];
    const ssize_t count = receive(connection, buffer, sizeof(buffer));
    if (count == 0 && connection.session && connection.session->last_error().empty()) return {};  // half a record
    if (count <= 0) return fail(Errc::kIo, "the server closed a connection after {} answers", answers_);
    connection.received.append(buffer, static_cast<std::size_t>(count));
    const std::size_t size = answer_size(connection.received);
    if (size == 0 || connection.received.size() < size) return {};
    note_answer(connection);
    connection.received.clear();
    return send_next(connection);
  }

  static ssize_t receive(Connection& connection, char* buffer, std::size_t size) {
    if (!connection.session) return recv(connection.fd, buffer, size, 0);
    return static_cast<ssize_t>(connection.session->read(buffer, size).count);
  }

  void note_answer(const Connection& connection) {
    last_answer_ = monotonic_now();
    if (++answers_ <= options_.warm_up) return;
    result_.latencies.push_back(last_answer_ - connection.sent);
    const std::string_view answer(connection.received);
    if (answer.substr(9, 1) != "2" || answer.find("X-Amz-Function-Error") != answer.npos) ++result_.failures;
  }

  // Bytes of the whole answer, 0 while its head is incomplete.
  static std::size_t answer_size(std::string_view received) {
    const std::size_t head = received.find("\r\n\r\n");
    if (head == received.npos) return 0;
    const char* length = strcasestr(received.data(), "content-length:");
    return head + 4 + (length == nullptr ? 0 : std::strtoul(length + 15, nullptr, 10));
  }

  const LoadOptions& options_;
  std::optional<net::TlsTrust> trust_;
  std::vector<std::string> requests_;
  std::vector<Connection> connections_;
  LoadResult result_;
  int epoll_ = -1;
  std::size_t next_request_ = 0;
  std::size_t answers_ = 0;
  Instant measured_from_{};
  Instant last_answer_{};
};

}  // namespace

Result<LoadResult> run_load(const LoadOptions& options) {
  return Load(options).run();
}

Duration percentile(std::vector<Duration>& values, double p) {
  if (values.empty()) return Duration(0);
  const auto rank = static_cast<std::size_t>(p * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank), values.end());
  return values[rank];
}

}  // namespace fairlead::bench
