#include "net/http_channel.h"

#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>

#include "net/http_server.h"
#include "net/http_stream.h"

namespace fairlead::net {
namespace {

using namespace std::chrono_literals;

class HttpChannelTest : public testing::Test {
 protected:
  void serve(HttpHandler handler) {
    server_ = std::make_unique<HttpServer>(io_, HttpLimits{}, std::move(handler));
    address_ = server_->listen("127.0.0.1:0").value();
  }
  std::shared_ptr<HttpChannel> channel(ChannelOptions options = {}) {
    const Endpoint endpoint = parse_endpoint("http://" + address_).value();
    return HttpChannel::create(io_, endpoint, resolve_endpoint(endpoint).value(), nullptr, options);
  }
  Result<ClientResponse> send(HttpChannel& through, std::string body, std::string prefix = "",
                              std::optional<Duration> patience = 30s) {
    std::optional<Result<ClientResponse>> answer;
    through.send({.method = "POST", .target = "/x", .body = std::move(body)}, std::move(prefix), patience,
                 [&](Result<ClientResponse> got) { answer = std::move(got); });
    while (!answer) io_.run_one();
    return *std::move(answer);
  }

  boost::asio::io_context io_{1};
  std::unique_ptr<HttpServer> server_;
  std::string address_;
};

TEST_F(HttpChannelTest, OneConnectionCarriesManyRequestsAndAPrefixGoesBeforeTheBody) {
  serve([](HttpExchange exchange) { exchange.respond({.status = 200, .body = exchange.request().take_body()}); });
  const auto through = channel();
  for (const std::size_t size : {0u, 1u, 100'000u, 4'000'000u, 5u}) {
    const auto answer = send(*through, std::string(size, 'b'), "prefix-");
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "prefix-" + std::string(size, 'b'));
    EXPECT_TRUE(through->is_connected());
    EXPECT_EQ(server_->connections(), 1u);
  }
}

TEST_F(HttpChannelTest, WhatWasNotReadMayBeSentElsewhereAndWhatWasMayNot) {
  serve([](HttpExchange exchange) { exchange.respond({.status = 200}); });
  const auto through = channel();
  ASSERT_TRUE(send(*through, "x"));
  server_.reset();  // closes its connection and refuses the next
  const auto refused = send(*through, "x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnavailable) << refused.error().message;

  serve([this](HttpExchange) { server_->close(); });
  const auto broken = send(*channel(), "x");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Errc::kIo) << broken.error().message;
}

TEST_F(HttpChannelTest, PatienceEndsAndTheServerSeesItsClientGo) {
  std::vector<HttpExchange> held;
  bool has_gone = false;
  serve([&](HttpExchange exchange) {
    exchange.on_disconnect([&] { has_gone = true; });
    held.push_back(std::move(exchange));
  });
  const auto through = channel();
  const auto late = send(*through, "x", "", 20ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::kDeadlineExceeded);
  while (!has_gone) io_.run_one();

  has_gone = false;
  bool was_called = false;
  through->send({.method = "POST", .target = "/x"}, "", std::nullopt, [&](const auto&) { was_called = true; });
  while (held.size() < 2) io_.run_one();
  through->close();
  while (!has_gone) io_.run_one();
  EXPECT_FALSE(was_called);
  EXPECT_FALSE(through->is_busy());
}

TEST_F(HttpChannelTest, AnAnswerIsBounded) {
  serve([](HttpExchange exchange) { exchange.respond({.status = 200, .body = std::string(1001, 'x')}); });
  EXPECT_EQ(send(*channel({.response_bytes = 1000}), "x").error().code, Errc::kTooLarge);
  EXPECT_TRUE(send(*channel({.response_bytes = 1001}), "x"));
}

TEST(Endpoint, IsReadOrRefused) {
  EXPECT_TRUE(parse_endpoint("https://host:1")->speaks_tls);
  EXPECT_EQ(parse_endpoint("http://[::1]:80/")->host, "::1");
  EXPECT_TRUE(parse_endpoint("http://[::1]:80")->is_local());
  EXPECT_TRUE(parse_endpoint("localhost:80")->is_local());
  EXPECT_TRUE(parse_endpoint("unix:/tmp/x")->is_local());
  EXPECT_FALSE(parse_endpoint("http://127.0.0.1.example.com:80")->is_local());
  for (const char* text :
       {"", "http://", "http://host", "host:0", "host:65536", "host:99999999999", ":80", "ftp://x", "http://u@h:1",
        "http://h:1/p", "http://h:1?q", "h:1 x", "unix:relative", "https://unix:/x"}) {
    EXPECT_FALSE(parse_endpoint(text)) << text;
  }
}

// Takes up to `room` bytes at a time.
class Taker final : public BodyTaker {
 public:
  bool wants(const ClientResponse& head) override { return head.status == 200; }
  bool take(std::string_view bytes) override {
    taken += bytes;
    if (then) then();
    return taken.size() < room;
  }
  std::string taken;
  std::size_t room = 1 << 30;
  std::function<void()> then;
};

TEST_F(HttpChannelTest, ABodyGoesToItsTakerAsItComesAndWaitsForIt) {
  std::optional<BodyWriter> writer;
  serve([&](HttpExchange exchange) {
    auto [made, body] = make_body_stream(1 << 20);
    writer.emplace(std::move(made));
    exchange.respond({.status = 200, .stream = std::move(body)});
  });
  const auto through = channel({.response_bytes = 64 << 10});  // of what is not taken
  const auto taker = std::make_shared<Taker>();
  taker->room = 0;
  std::optional<Result<ClientResponse>> answer;
  through->send(
      {.method = "POST", .target = "/x"}, "", std::nullopt,
      [&](Result<ClientResponse> got) { answer = std::move(got); }, taker);
  while (!writer) io_.run_one();
  ASSERT_EQ(writer->write("first"), BodyWrite::kTaken);
  while (taker->taken.empty()) io_.run_one();
  EXPECT_EQ(taker->taken, "first");

  // It is full: what it has not asked for stays in the sockets and then with the writer.
  std::size_t sent = 5;
  for (int turns = 0; turns < 2000; ++turns) {
    while (writer->write(std::string(64 << 10, 'x')) == BodyWrite::kTaken) sent += 64 << 10;
    if (io_.poll_one() == 0) break;
  }
  EXPECT_EQ(taker->taken, "first");
  taker->room = 1 << 30;
  taker->resume();
  while (taker->taken.size() < sent) io_.run_one();
  taker->resume();  // it does not wait
  writer->finish();
  while (!answer) io_.run_one();
  ASSERT_TRUE(*answer) << answer->error().message;
  EXPECT_EQ((*answer)->body, "");
  EXPECT_EQ(taker->taken.size(), sent);
  taker->resume();  // the answer is over
  EXPECT_TRUE(through->is_connected());
}

TEST_F(HttpChannelTest, ABodyThatItsTakerDoesNotWantIsInTheAnswer) {
  serve([](HttpExchange exchange) { exchange.respond({.status = 404, .body = "nothing"}); });
  const auto through = channel();
  const auto taker = std::make_shared<Taker>();
  std::optional<Result<ClientResponse>> answer;
  through->send(
      {.method = "POST", .target = "/x"}, "", std::nullopt,
      [&](Result<ClientResponse> got) { answer = std::move(got); }, taker);
  while (!answer) io_.run_one();
  EXPECT_EQ((*answer)->body, "nothing");
  EXPECT_EQ(taker->taken, "");
}

TEST_F(HttpChannelTest, ATakerMayCloseItsChannel) {
  serve([](HttpExchange exchange) { exchange.respond({.status = 200, .body = std::string(1 << 20, 'x')}); });
  const auto through = channel();
  const auto taker = std::make_shared<Taker>();
  taker->then = [&] { through->close(); };
  through->send(
      {.method = "POST", .target = "/x"}, "", std::nullopt, [](const auto&) { FAIL() << "answered"; }, taker);
  while (taker->taken.empty()) io_.run_one();
  io_.poll();
  EXPECT_FALSE(through->is_connected());
  EXPECT_FALSE(through->is_busy());
  EXPECT_LT(taker->taken.size(), std::size_t{1} << 20);
  taker->resume();
}

}  // namespace
}  // namespace fairlead::net
