#include "tests/fake_runtime_api.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace fairlead {
namespace {

constexpr int kTimeoutMs = 10'000;

bool wait_readable(int fd) {
  pollfd entry = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, kTimeoutMs) == 1;
}

int listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << path;
  EXPECT_EQ(::listen(fd, 4), 0);
  return fd;
}

int listen_tcp(std::string& port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd, 4), 0);
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  port = std::to_string(::ntohs(address.sin_port));
  return fd;
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

ReceivedRequest parse_head(std::string_view head) {
  ReceivedRequest request;
  const std::string_view first = head.substr(0, head.find("\r\n"));
  const std::size_t space = first.find(' ');
  request.method = first.substr(0, space);
  request.path = first.substr(space + 1, first.rfind(' ') - space - 1);
  head.remove_prefix(first.size() + 2);
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    const std::size_t colon = line.find(": ");
    request.headers[lower_case(std::string(line.substr(0, colon)))] = line.substr(colon + 2);
    head.remove_prefix(line.size() + 2);
  }
  return request;
}

}  // namespace

FakeRuntimeApi::FakeRuntimeApi(Transport transport) {
  if (transport == Transport::kUnix) {
    char pattern[] = "/tmp/fake-runtime-api-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    endpoint_.socket_path = folder_ + "/api.sock";
    listener_ = listen_unix(endpoint_.socket_path);
  } else {
    endpoint_.host = "127.0.0.1";
    listener_ = listen_tcp(endpoint_.port);
  }
}

FakeRuntimeApi::~FakeRuntimeApi() {
  close_connection();
  stop_listening();
  if (!folder_.empty()) ::rmdir(folder_.c_str());
}

void FakeRuntimeApi::accept() {
  close_connection();
  received_.clear();
  ASSERT_TRUE(wait_readable(listener_)) << "no connection";
  connection_ = ::accept(listener_, nullptr, nullptr);
  ASSERT_GE(connection_, 0);
}

void FakeRuntimeApi::stop_listening() {
  if (listener_ >= 0) ::close(listener_);
  listener_ = -1;
  if (!endpoint_.socket_path.empty()) ::unlink(endpoint_.socket_path.c_str());
}

void FakeRuntimeApi::close_connection() {
  if (connection_ >= 0) ::close(connection_);
  connection_ = -1;
}

bool FakeRuntimeApi::receive_more() {
  char chunk[64 * 1024];
  if (!wait_readable(connection_)) return false;
  const ssize_t got = ::recv(connection_, chunk, sizeof chunk, 0);
  if (got > 0) received_.append(chunk, static_cast<std::size_t>(got));
  return got > 0;
}

ReceivedRequest FakeRuntimeApi::read_request() {
  std::size_t end = 0;
  while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
    if (!receive_more()) {
      ADD_FAILURE() << "no complete request, only: " << received_;
      return {};
    }
  }
  ReceivedRequest request = parse_head(std::string_view(received_).substr(0, end + 2));
  received_.erase(0, end + 4);
  const auto length = request.headers.find("content-length");
  const std::size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (received_.size() < size) {
    if (!receive_more()) {
      ADD_FAILURE() << "body cut off at " << received_.size() << " of " << size;
      return {};
    }
  }
  request.body = received_.substr(0, size);
  received_.erase(0, size);
  return request;
}

std::string FakeRuntimeApi::receive_once() {
  EXPECT_TRUE(received_.empty());
  EXPECT_TRUE(receive_more());
  return std::exchange(received_, {});
}

void FakeRuntimeApi::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ASSERT_GT(sent, 0);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void FakeRuntimeApi::send_bytewise(std::string_view bytes) {
  const int on = 1;
  ::setsockopt(connection_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // refused on a Unix socket, which never waits
  for (std::size_t i = 0; i < bytes.size(); ++i) send(bytes.substr(i, 1));
}

std::string FakeRuntimeApi::event(std::string_view request_id, std::string_view payload) {
  std::string text = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nLambda-Runtime-Aws-Request-Id: ";
  text.append(request_id).append("\r\nLambda-Runtime-Deadline-Ms: 1700000000123\r\n");
  text.append("lambda-runtime-invoked-function-arn: arn:aws:lambda:local:0:function:f\r\n");
  text.append("Lambda-Runtime-Trace-Id: Root=1-2-3\r\nContent-Length: " + std::to_string(payload.size()) + "\r\n\r\n");
  return text.append(payload);
}

std::string FakeRuntimeApi::accepted() {
  return "HTTP/1.1 202 Accepted\r\nContent-Length: 16\r\n\r\n{\"status\":\"OK\"}\n";
}

}  // namespace fairlead
