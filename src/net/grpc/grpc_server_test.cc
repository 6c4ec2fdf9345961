#include "net/grpc/grpc_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/byte_budget.h"
#include "net/grpc/grpc_message.h"
#include "net/grpc/grpc_test_client.h"

namespace fairlead::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string framed(std::string_view text) {
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

TEST_F(GrpcServerTest, ACallIsAnExchange) {
  serve();
  GrpcTestClient client(io_, address_);
  const auto& call = client.wait(client.begin("/p.S/M", framed("abc"), {{"x-test", "value"}}));
  EXPECT_EQ(call.status(), "0");
  EXPECT_EQ(call.body, framed("POST /p.S/M [value] localhost abc"));
  EXPECT_EQ(call.fields.at(":status"), "200");
  EXPECT_THAT(call.fields.at("content-type"), StartsWith("application/grpc"));
  EXPECT_EQ(call.fields.at("x-request-id"), "r 1  x: y") << "no answer adds fields of its own";
}

TEST_F(GrpcServerTest, AnAnswerOfAnotherStatusIsAStatusOfGrpc) {
  serve();
  GrpcTestClient client(io_, address_);
  const std::pair<const char*, const char*> statuses[] = {{"400", "3"},  {"401", "16"}, {"403", "7"},  {"404", "5"},
                                                          {"409", "9"},  {"413", "8"},  {"415", "12"}, {"429", "8"},
                                                          {"500", "13"}, {"503", "14"}, {"504", "4"}};
  for (const auto& [http, grpc] : statuses) {
    const auto& call = client.wait(client.begin(std::string("/status/") + http, framed("")));
    EXPECT_EQ(call.status(), grpc) << http;
    EXPECT_EQ(call.message(), "it is 5 %25 off%0A");
    EXPECT_EQ(call.body, "");
  }
  const auto& unknown = client.wait(client.begin("/unknown", framed("")));
  EXPECT_EQ(unknown.status(), "12");
  const auto& dropped = client.wait(client.begin("/drop", framed("")));
  EXPECT_EQ(dropped.status(), "13");
}

TEST_F(GrpcServerTest, CallsOfOneConnectionAreAnsweredInAnyOrder) {
  serve();
  GrpcTestClient client(io_, address_);
  const int first = client.begin("/hold/1", framed("1")), second = client.begin("/hold/2", framed("2"));
  ASSERT_TRUE(wait_held(client, 2));
  release("/hold/2", "two");
  EXPECT_EQ(client.wait(second).body, framed("two"));
  EXPECT_FALSE(client.call(first).is_closed);
  release("/hold/1", "one");
  EXPECT_EQ(client.wait(first).body, framed("one"));
  EXPECT_THAT(disconnected_, ElementsAre());
}

TEST_F(GrpcServerTest, WhoCancelsIsToldOf) {
  serve();
  GrpcTestClient client(io_, address_);
  const int first = client.begin("/hold/1", framed("1"));
  const int second = client.begin("/hold/2", framed("2"));
  ASSERT_TRUE(wait_held(client, 2));
  client.cancel(first);
  ASSERT_TRUE(run_until(io_, [&] { return disconnected_.size() == 1; }));
  EXPECT_THAT(disconnected_, ElementsAre("/hold/1"));
  release("/hold/1", "nobody wants it");
  release("/hold/2", "two");
  EXPECT_EQ(client.wait(second).body, framed("two"));
}

TEST_F(GrpcServerTest, WhoDisconnectsIsToldOf) {
  serve();
  GrpcTestClient client(io_, address_);
  client.begin("/hold/1", framed("1"));
  client.begin("/hold/2", framed("2"));
  ASSERT_TRUE(wait_held(client, 2));
  client.close();
  ASSERT_TRUE(run_until(io_, [&] { return disconnected_.size() == 2; }));
  EXPECT_EQ(server_->connections(), 0u);
  release("/hold/1", "nobody wants it");
}

TEST_F(GrpcServerTest, LargeMessagesAndAnswersComeWhole) {
  serve();
  GrpcTestClient client(io_, address_);
  std::string large;
  for (int i = 0; i < 200'000; ++i) large += std::to_string(i);
  const auto& call = client.wait(client.begin("/p.S/M", framed(large)));
  EXPECT_EQ(call.status(), "0");
  EXPECT_EQ(call.body, framed("POST /p.S/M [] localhost " + large));
}

TEST_F(GrpcServerTest, AMessageThatLiesIsRefusedBeforeItIsThere) {
  serve({.message_bytes = 1000});
  GrpcTestClient client(io_, address_);
  const auto refused = [&](std::string bytes, bool stays_open = false) {
    return client.wait(client.begin("/p.S/M", std::move(bytes), {}, stays_open));
  };
  const auto large = refused(grpc_prefix(1001), true);
  EXPECT_EQ(large.status(), "8");
  EXPECT_EQ(large.message(), "the message has 1001 bytes; it may have at most 1000");
  EXPECT_EQ(large.reset, 0u) << "NO_ERROR: the rest need not be sent";
  EXPECT_EQ(refused(std::string("\1\0\0\0\1x", 6)).status(), "12") << "compressed";
  EXPECT_EQ(refused(framed("a") + framed("b")).status(), "12");
  EXPECT_EQ(refused(grpc_prefix(3) + "ab").message(), "the message ends after 2 of its 3 bytes");
  EXPECT_EQ(refused("").message(), "there is no message: 0 of the 5 bytes before it arrived");
  EXPECT_EQ(refused(framed("ok")).status(), "0");
  EXPECT_THAT(targets_, ElementsAre("/p.S/M"));
}

TEST_F(GrpcServerTest, WhatIsNoGrpcIsRefused) {
  serve({.header_bytes = 1000});
  GrpcTestClient client(io_, address_);
  EXPECT_EQ(client.wait(client.begin("/p.S/M", framed(""), {}, false, "GET")).status(), "12");
  EXPECT_EQ(client.wait(client.begin("/p.S/M", framed(""), {}, false, "POST", "application/json")).status(), "12");
  const auto& large = client.wait(client.begin("/p.S/M", framed(""), {{"x-large", std::string(1000, 'x')}}));
  EXPECT_EQ(large.status(), "8");
  EXPECT_THAT(large.message(), HasSubstr("1000 bytes"));
  EXPECT_THAT(targets_, ElementsAre());

  TestClient plain(io_, address_);
  plain.send("GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(plain.receive(), HasSubstr("gRPC (HTTP/2) is spoken at this address"));
}

TEST_F(GrpcServerTest, OfManyCallsAtOnceOthersHaveTheirTurns) {
  serve({.calls_per_turn = 2});
  GrpcTestClient client(io_, address_);
  std::vector<int> ids;
  for (int i = 0; i < 50; ++i) ids.push_back(client.begin("/p.S/M", framed(std::to_string(i))));
  for (int i = 0; i < 50; ++i) EXPECT_THAT(client.wait(ids[i]).body, HasSubstr("localhost " + std::to_string(i)));
}

TEST_F(GrpcServerTest, MoreCallsThanMayBeWait) {
  serve({.calls = 2});
  GrpcTestClient client(io_, address_);
  turn(client);  // the settings of the server arrive
  std::vector<int> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(client.begin(fmt::format("/hold/{}", i), framed("")));
  ASSERT_TRUE(wait_held(client, 2));
  turn(client);
  EXPECT_EQ(held_.size(), 2u);
  release("/hold/0", "");
  release("/hold/1", "");
  ASSERT_TRUE(wait_held(client, 2));
  EXPECT_TRUE(held_.contains("/hold/3"));
}

TEST_F(GrpcServerTest, WhoHoldsTooMuchIsRefused) {
  const auto budget = std::make_shared<ByteBudget>(100'000);
  serve({}, {.bytes = 100'000,
             .holder = [](HttpRequest& head) -> Result<std::string> {
               if (head.header("authorization").empty()) return fail(Errc::kUnauthenticated, "who are you?");
               return std::string(head.header("authorization"));
             },
             .shared = budget});
  GrpcTestClient client(io_, address_);
  const GrpcTestClient::Fields a = {{"authorization", "a"}}, b = {{"authorization", "b"}};
  const auto& stranger = client.wait(client.begin("/hold/s", framed(std::string(5'000, 's'))));
  EXPECT_EQ(stranger.status(), "16");
  EXPECT_EQ(stranger.message(), "who are you?");
  client.begin("/hold/1", framed(std::string(45'000, 'a')), a);
  ASSERT_TRUE(wait_held(client, 1));
  EXPECT_GE(budget->held_by("a"), 45'000u);
  EXPECT_EQ(client.wait(client.begin("/hold/2", framed(std::string(30'000, 'a')), a)).status(), "8");
  EXPECT_EQ(client.wait(client.begin("/p.S/M", framed(std::string(20'000, 'b')), b)).status(), "0");
  release("/hold/1", "");
  turn(client);
  EXPECT_EQ(budget->used(), 0u);
}

// An answer that nobody takes is in the budget of who asked for it, and goes when its time is over.
TEST_F(GrpcServerTest, WhoTakesNoAnswersIsCutOff) {
  const auto budget = std::make_shared<ByteBudget>(1'000'000);
  serve({.transfer_timeout = std::chrono::milliseconds(50)},
        {.bytes = 1'000'000, .holder = [](HttpRequest&) { return std::string("a"); }, .shared = budget});
  GrpcTestClient client(io_, address_, 0);
  const int first = client.begin("/large", framed(""));
  const int second = client.begin("/large", framed(""));
  ASSERT_TRUE(run_until(io_, [&] { return targets_.size() == 2; }));
  EXPECT_EQ(budget->used(), 300'000u) << "the second finds no room beside what is left free";
  EXPECT_EQ(client.wait(second).status(), "8");
  client.wait(first);
  EXPECT_TRUE(client.has_ended());
  EXPECT_EQ(budget->used(), 0u);
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(GrpcServerTest, ACallThatDripsInIsRefused) {
  serve({.transfer_timeout = std::chrono::milliseconds(50)});
  GrpcTestClient client(io_, address_);
  const auto& call = client.wait(client.begin("/p.S/M", grpc_prefix(10) + "abc", {}, true));
  EXPECT_EQ(call.status(), "4");
  EXPECT_EQ(client.wait(client.begin("/p.S/M", framed(""))).status(), "0") << "the others go on";
}

TEST_F(GrpcServerTest, IdleConnectionsEnd) {
  serve({.idle_timeout = std::chrono::milliseconds(50)});
  GrpcTestClient client(io_, address_);
  EXPECT_EQ(client.wait(client.begin("/p.S/M", framed(""))).status(), "0");
  ASSERT_TRUE(run_until(io_, [&] {
    client.turn();
    return client.has_ended();
  }));
  EXPECT_TRUE(client.is_told_to_leave());
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(GrpcServerTest, WhoIsIdleForLongestMakesRoom) {
  serve({.connections = 2});
  GrpcTestClient busy(io_, address_), idle(io_, address_);
  const int held = busy.begin("/hold/1", framed(""));
  ASSERT_TRUE(wait_held(busy, 1));
  ASSERT_EQ(idle.wait(idle.begin("/p.S/M", framed(""))).status(), "0");
  GrpcTestClient third(io_, address_);
  EXPECT_EQ(third.wait(third.begin("/p.S/M", framed(""))).status(), "0");
  idle.turn();
  EXPECT_TRUE(idle.has_ended());
  release("/hold/1", "x");
  EXPECT_EQ(busy.wait(held).body, framed("x"));
  EXPECT_EQ(server_->connections(), 2u);
}

TEST_F(GrpcServerTest, WhoIsInEndsInPeaceWhenTheServerGoes) {
  serve();
  GrpcTestClient client(io_, address_);
  const int held = client.begin("/hold/1", framed(""));
  ASSERT_TRUE(wait_held(client, 1));
  server_->stop_listening();
  ASSERT_TRUE(run_until(io_, [&] {
    client.turn();
    return client.is_told_to_leave();
  }));
  release("/hold/1", "x");
  EXPECT_EQ(client.wait(held).body, framed("x"));
  ASSERT_TRUE(run_until(io_, [&] {
    client.turn();
    return client.has_ended();
  }));
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(GrpcServerTest, AnExchangeMayOutliveTheServer) {
  serve();
  GrpcTestClient client(io_, address_);
  client.begin("/hold/1", framed(""));
  ASSERT_TRUE(wait_held(client, 1));
  server_.reset();
  turn(client);
  EXPECT_TRUE(client.has_ended());
  release("/hold/1", "x");
  EXPECT_THAT(disconnected_, ElementsAre());
}

// Opening and cancelling calls costs who does it their connection, and the server nothing that lasts.
TEST_F(GrpcServerTest, WhoCancelsAllTheTimeIsCutOff) {
  serve();
  GrpcTestClient client(io_, address_);
  for (int i = 0; i < 5'000 && !client.has_ended(); ++i) {
    client.cancel(client.begin("/hold/x", framed("")));
    if (i % 50 == 0) turn(client);
  }
  ASSERT_TRUE(run_until(io_, [&] {
    client.turn();
    return client.has_ended();
  }));
  EXPECT_EQ(server_->connections(), 0u);
}

TEST(GrpcStatus, TimeoutsAreRead) {
  using namespace std::chrono_literals;
  EXPECT_EQ(parse_grpc_timeout("250m"), 250ms);
  EXPECT_EQ(parse_grpc_timeout("5S"), 5s);
  EXPECT_EQ(parse_grpc_timeout("2M"), 2min);
  EXPECT_EQ(parse_grpc_timeout("99999999H"), 365 * 24h);
  EXPECT_EQ(parse_grpc_timeout("99999999u"), 99'999'999us);
  EXPECT_EQ(parse_grpc_timeout("1n"), 1ns);
  for (const char* wrong : {"", "m", "5", "5x", "-5S", "+5S", "999999999S", " 5S", "5 S", "0x5S"}) {
    EXPECT_EQ(parse_grpc_timeout(wrong), std::nullopt) << wrong;
  }
}

TEST(GrpcMessage, ComesInPiecesOfAnySize) {
  const std::string bytes = framed("0123456789");
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    GrpcMessage message;
    for (std::size_t i = 0; i < bytes.size(); i += size) {
      EXPECT_TRUE(message.finish()) << "not yet";
      EXPECT_FALSE(message.append(std::string_view(bytes).substr(i, size), 10));
    }
    EXPECT_FALSE(message.finish());
    EXPECT_EQ(message.text(), "0123456789");
  }
}

}  // namespace
}  // namespace fairlead::net
