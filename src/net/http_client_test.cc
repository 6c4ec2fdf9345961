#include "net/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>

#include "net/http_test_client.h"

namespace fairlead::net {
namespace {

using ::testing::HasSubstr;

// A server on its own thread, since the client blocks.
class HttpClientTest : public ::testing::Test {
 protected:
  void serve(HttpHandler handler, HttpLimits limits = {}) {
    server_ = std::make_unique<HttpServer>(io_, limits, std::move(handler));
    address_ = server_->listen("127.0.0.1:0").value();
    thread_ = std::thread([this] { io_.run(); });
  }

  void TearDown() override {
    guard_.reset();
    io_.stop();
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }

  // Asked on the server's own thread.
  std::size_t connections() {
    std::promise<std::size_t> answer;
    boost::asio::post(io_, [&] { answer.set_value(server_->connections()); });
    return answer.get_future().get();
  }

  static void echo(HttpExchange exchange) {
    HttpRequest& request = exchange.request();
    std::string body = fmt::format("{} {} {}", request.method(), request.target(), request.body());
    exchange.respond({.status = 200, .headers = {{"X-Echo", std::string(request.header("x-in"))}}, .body = body});
  }

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{io_.get_executor()};
  std::unique_ptr<HttpServer> server_;
  std::string address_;
  std::thread thread_;
};

TEST_F(HttpClientTest, SendsAndReceives) {
  serve(echo);
  HttpClient client("http://" + address_ + "/");
  const auto answer = client.send({.method = "POST", .target = "/a", .headers = {{"X-In", "h"}}, .body = "payload"});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(200u, answer->status);
  EXPECT_EQ("POST /a payload", answer->body);
  EXPECT_EQ("h", answer->header("x-echo"));
}

TEST_F(HttpClientTest, KeepsItsConnection) {
  serve(echo, {.connections = 1});
  HttpClient client(address_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(200u, client.send({}).value().status);
}

TEST_F(HttpClientTest, ConnectsAnewAfterTheServerClosed) {
  serve([](HttpExchange exchange) { exchange.respond({}); }, {.idle_timeout = std::chrono::milliseconds(5)});
  HttpClient client(address_);
  ASSERT_TRUE(client.send({}));
  while (connections() > 0) std::this_thread::yield();
  EXPECT_TRUE(client.send({}));
}

TEST_F(HttpClientTest, ReadsHeadAnswersAndEmptyOnes) {
  serve([](HttpExchange exchange) {
    if (exchange.request().method() == "HEAD") return exchange.respond({.status = 200, .body = "abc"});
    exchange.respond({.status = 204});
  });
  HttpClient client(address_);
  EXPECT_EQ("3", client.send({.method = "HEAD"}).value().header("Content-Length"));
  EXPECT_EQ(204u, client.send({.method = "DELETE"}).value().status);
  EXPECT_EQ("", client.send({.method = "HEAD"}).value().body);
}

TEST_F(HttpClientTest, ReceivesTheRefusalOfABodyThatIsTooLarge) {
  serve(echo, {.body_bytes = 1000});
  HttpClient client(address_);
  const auto answer = client.send({.method = "POST", .body = std::string(4 << 20, 'x')});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(413u, answer->status);
}

TEST_F(HttpClientTest, RefusesAnAnswerThatIsTooLarge) {
  serve([](HttpExchange exchange) { exchange.respond({.status = 200, .body = std::string(2000, 'x')}); });
  HttpClient client(address_, {.response_bytes = 1000});
  const auto answer = client.send({});
  ASSERT_FALSE(answer);
  EXPECT_EQ(Errc::kTooLarge, answer.error().code);
  EXPECT_THAT(answer.error().message, HasSubstr("1000 bytes"));
}

TEST_F(HttpClientTest, SaysThatTheConnectionEndedWithoutAnAnswer) {
  serve([this](HttpExchange) { server_->close(); });
  HttpClient client(address_);
  const auto answer = client.send({});
  ASSERT_FALSE(answer);
  EXPECT_EQ(Errc::kIo, answer.error().code);
}

TEST_F(HttpClientTest, WaitsForTheRestOfALastChunk) {
  auto listener = open_listener("127.0.0.1:0");
  ASSERT_TRUE(listener);
  std::thread server([&] {
    pollfd waiting{listener->fd, POLLIN, 0};
    ::poll(&waiting, 1, -1);
    const int peer = ::accept(listener->fd, nullptr, nullptr);
    const std::string_view answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r";
    EXPECT_EQ(::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL), std::ssize(answer));
    EXPECT_EQ(::send(peer, "\n", 1, MSG_NOSIGNAL), 1);
    char request[1000];
    while (::recv(peer, request, sizeof request, 0) > 0) {
    }
    ::close(peer);
  });
  {
    HttpClient client(listener->address);
    const auto answer = client.send({});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "ok");
  }
  server.join();
  ::close(listener->fd);
}

TEST_F(HttpClientTest, GivesUpAtItsTimeout) {
  std::vector<HttpExchange> held;
  serve([&](HttpExchange exchange) { held.push_back(std::move(exchange)); });
  HttpClient client(address_, {.timeout = std::chrono::milliseconds(20)});
  EXPECT_EQ(Errc::kDeadlineExceeded, client.send({}).error().code);
  TearDown();
}

TEST(HttpClient, SaysThatNobodyListens) {
  HttpClient tcp("127.0.0.1:1");
  EXPECT_EQ(Errc::kUnavailable, tcp.send({}).error().code);
  HttpClient unix_socket("unix:/nonexistent/socket");
  const auto answer = unix_socket.send({});
  EXPECT_EQ(Errc::kUnavailable, answer.error().code);
  EXPECT_THAT(answer.error().message, HasSubstr("/nonexistent/socket"));
}

TEST(HttpClient, NamesAnAddressThatIsNone) {
  EXPECT_EQ(Errc::kInvalidArgument, HttpClient("no-port").send({}).error().code);
}

TEST(PercentEncode, KeepsOnlyUnreservedCharacters) {
  EXPECT_EQ("arn%3Aaws%3Af%2Fa-b_c.d~%20%C3%A9", percent_encode("arn:aws:f/a-b_c.d~ \xC3\xA9"));
}

}  // namespace
}  // namespace fairlead::net
