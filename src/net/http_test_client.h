// For tests: a raw client of a server that runs in the same thread. Waiting turns the server's event loop.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>
#include <string_view>

#include "net/http_listener.h"

namespace fairlead::net {

// Turns the loop until `done` holds; false after ten seconds without it.
template <typename Predicate>
bool run_until(boost::asio::io_context& io, Predicate done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    io.restart();
    io.run_one_for(std::chrono::milliseconds(5));
  }
  return true;
}

class TestClient {
 public:
  TestClient(boost::asio::io_context& io, std::string_view address) : io_(io) {
    const auto target = parse_socket_address(address);
    EXPECT_TRUE(target);
    fd_ = ::socket(target->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(0, ::connect(fd_, reinterpret_cast<const sockaddr*>(target->storage), target->size));
  }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  ~TestClient() { close(); }

  void send(std::string_view data) {
    while (!data.empty()) {
      const ssize_t count = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) {
        data.remove_prefix(static_cast<std::size_t>(count));
      } else {
        if (errno != EAGAIN) return;  // the server closed: the test sees it in what it receives
        io_.restart();
        io_.run_one_for(std::chrono::milliseconds(5));
      }
    }
  }

  // One answer to a request that is not HEAD: head and body. Empty when the server closed first.
  std::string receive() {
    std::size_t total = 0;
    run_until(io_, [&] {
      take();
      total = complete_size();
      return total > 0 || ended_;
    });
    std::string answer = received_.substr(0, total);
    received_.erase(0, total);
    return answer;
  }

  // What has arrived, once it is so many bytes or the server has closed.
  std::string receive_at_least(std::size_t bytes) {
    EXPECT_TRUE(run_until(io_, [&] {
      take();
      return received_.size() >= bytes || ended_;
    }));
    return std::exchange(received_, {});
  }

  std::string receive_until_closed() {
    EXPECT_TRUE(run_until(io_, [&] {
      take();
      return ended_;
    }));
    return std::exchange(received_, {});
  }

  int fd() const { return fd_; }
  void end_sending() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  void take() {
    char buffer[65536];
    ssize_t count = 0;
    while ((count = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT)) > 0) {
      received_.append(buffer, static_cast<std::size_t>(count));
    }
    if (count == 0 || errno != EAGAIN) ended_ = true;
  }

  std::size_t complete_size() const {
    const std::size_t head = received_.find("\r\n\r\n");
    if (head == std::string::npos) return 0;
    const std::size_t field = received_.find("Content-Length: ");
    if (field == std::string::npos || field > head) return head + 4;
    const std::size_t size = head + 4 + std::stoul(received_.substr(field + 16));
    return received_.size() >= size ? size : 0;
  }

  boost::asio::io_context& io_;
  int fd_ = -1;
  bool ended_ = false;
  std::string received_;
};

}  // namespace fairlead::net
