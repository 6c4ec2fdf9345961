// For tests: a server of gRPC that answers with what it was asked, in the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/grpc/grpc_message.h"
#include "net/grpc/grpc_server.h"
#include "net/grpc/grpc_test_client.h"

namespace fairlead::net {

inline std::string framed(std::string_view text) {
  return grpc_prefix(text.size()) + std::string(text);
}

class GrpcServerTest : public ::testing::Test {
 protected:
  // Answers with what it was asked, "/status/404" with that status; keeps exchanges of "/hold..." until release().
  void serve(const GrpcLimits& limits = {}, RequestMemory memory = {}) {
    server_ = std::make_unique<GrpcServer>(
        io_, limits, [this](HttpExchange exchange) { handle(std::move(exchange)); }, std::move(memory));
    const auto address = server_->listen("127.0.0.1:0");
    ASSERT_TRUE(address) << address.error().message;
    address_ = *address;
  }

  void handle(HttpExchange exchange) {
    HttpRequest& request = exchange.request();
    const std::string target(request.target());
    targets_.push_back(target);
    if (target.starts_with("/hold")) {
      exchange.on_disconnect([this, target] { disconnected_.push_back(target); });
      held_.emplace(target, std::move(exchange));
      return;
    }
    if (target == "/drop") return;
    if (target == "/first") boost::asio::post(io_, [this] { targets_.emplace_back("somebody else"); });
    if (target.starts_with("/status/")) {
      return exchange.respond(
          {.status = static_cast<unsigned>(std::stoi(target.substr(8))), .body = "it is 5 % off\n"});
    }
    if (target == "/unknown") {
      return exchange.respond({.status = 404, .headers = {{"grpc-status", "12"}}, .body = "no such method"});
    }
    if (target == "/large") return exchange.respond({.body = std::string(300'000, 'l')});
    std::string body = fmt::format("{} {} [{}] {} {}", request.method(), target, request.header("X-Test"),
                                   request.header("Host"), request.body());
    exchange.respond(
        {.headers = {{"X-Request-Id", " r 1\r\nx: y\n"}, {"Content-Type", "text/plain"}}, .body = std::move(body)});
  }

  void release(const std::string& target, std::string body) {
    const auto it = held_.find(target);
    ASSERT_NE(it, held_.end());
    it->second.respond({.body = std::move(body)});
    held_.erase(it);
  }

  bool wait_held(GrpcTestClient& client, std::size_t count) {
    return run_until(io_, [&] {
      client.turn();
      return held_.size() == count;
    });
  }
  void turn_until_gone() {
    EXPECT_TRUE(run_until(io_, [&] { return server_->connections() == 0; }));
  }
  // So often that whatever could come has come.
  void turn(GrpcTestClient& client) {
    for (int i = 0; i < 20; ++i) {
      client.turn();
      io_.restart();
      io_.poll();
    }
  }

  boost::asio::io_context io_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  std::unique_ptr<GrpcServer> server_;
  std::string address_;
  std::vector<std::string> targets_;
  std::map<std::string, HttpExchange> held_;
  std::vector<std::string> disconnected_;
};

}  // namespace fairlead::net
