#include "net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "net/http_test_client.h"

namespace fairlead::net {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpServerTest : public ::testing::Test {
 protected:
  // Answers with what it was asked; keeps exchanges of "/hold..." until release().
  void serve(HttpLimits limits = {}) {
    server_ = std::make_unique<HttpServer>(io_, limits, [this](HttpExchange exchange) { handle(std::move(exchange)); });
    const auto address = server_->listen("127.0.0.1:0");
    ASSERT_TRUE(address) << address.error().message;
    address_ = *address;
  }

  void handle(HttpExchange exchange) {
    HttpRequest& request = exchange.request();
    targets_.emplace_back(request.target());
    if (request.target().starts_with("/hold")) {
      const std::string target(request.target());
      exchange.on_disconnect([this, target] { disconnected_.push_back(target); });
      held_.emplace(target, std::move(exchange));
      return;
    }
    if (request.target() == "/drop") return;
    std::string body =
        fmt::format("{} {} [{}] {}", request.method(), request.target(), request.header("x-test"), request.body());
    exchange.respond({.status = 200, .headers = {{"Content-Type", "text/plain"}}, .body = std::move(body)});
  }

  void release(const std::string& target, std::string body) {
    const auto it = held_.find(target);
    ASSERT_NE(it, held_.end());
    it->second.respond({.status = 200, .body = std::move(body)});
    held_.erase(it);
  }

  // What is there is read.
  void turn() {
    for (int i = 0; i < 3; ++i) {
      io_.restart();
      io_.poll();
    }
  }

  bool wait_held(std::size_t count) {
    return run_until(io_, [&] { return held_.size() == count; });
  }

  boost::asio::io_context io_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  std::unique_ptr<HttpServer> server_;
  std::string address_;
  std::vector<std::string> targets_;
  std::map<std::string, HttpExchange> held_;
  std::vector<std::string> disconnected_;
};

TEST_F(HttpServerTest, AnswersARequest) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /a%2Fb?c=1 HTTP/1.1\r\nHost: x\r\nX-TEST: value\r\n\r\n");
  const std::string answer = client.receive();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: "));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nGET /a%2Fb?c=1 [value] "));
}

TEST_F(HttpServerTest, AllHeadersAndTheAddressOfAClientAreTold) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /hold HTTP/1.1\r\nHost: x\r\nA: 1\r\na: 2\r\nB:\r\n\r\n");
  ASSERT_TRUE(wait_held(1));
  std::string all;
  for (const Header& header : held_.at("/hold").request().all_headers()) all += header.name + "=" + header.value + ";";
  EXPECT_EQ(all, "Host=x;A=1;a=2;B=;");
  EXPECT_EQ(held_.at("/hold").request().peer_address(), "127.0.0.1");
}

TEST_F(HttpServerTest, KeepsTheConnectionForTheNextRequest) {
  serve();
  TestClient client(io_, address_);
  for (int i = 0; i < 3; ++i) {
    client.send(fmt::format("POST /{} HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi", i));
    EXPECT_THAT(client.receive(), EndsWith(fmt::format("POST /{} [] hi", i)));
  }
  EXPECT_EQ(1u, server_->connections());
}

TEST_F(HttpServerTest, ReadsARequestThatArrivesByteByByte) {
  serve();
  TestClient client(io_, address_);
  const std::string request = "POST /slow HTTP/1.1\r\nX-Test: v\r\nContent-Length: 5\r\n\r\nhello";
  for (const char c : request) {
    client.send(std::string_view(&c, 1));
    io_.poll();
    io_.restart();
  }
  EXPECT_THAT(client.receive(), EndsWith("POST /slow [v] hello"));
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInRequestOrder) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /hold1 HTTP/1.1\r\n\r\nGET /hold2 HTTP/1.1\r\n\r\nGET /now HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(wait_held(2));
  ASSERT_TRUE(run_until(io_, [&] { return targets_.size() == 3; }));
  release("/hold2", "second");
  release("/hold1", "first");
  EXPECT_THAT(client.receive(), EndsWith("first"));
  EXPECT_THAT(client.receive(), EndsWith("second"));
  EXPECT_THAT(client.receive(), EndsWith("GET /now [] "));
}

TEST_F(HttpServerTest, StopsReadingAtTheLimitOfPipelinedRequestsAndGoesOnLater) {
  serve({.pipelined_requests = 2});
  TestClient client(io_, address_);
  client.send("GET /hold1 HTTP/1.1\r\n\r\nGET /hold2 HTTP/1.1\r\n\r\nGET /third HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(wait_held(2));
  io_.restart();
  io_.poll();
  EXPECT_THAT(targets_, ElementsAre("/hold1", "/hold2"));
  release("/hold1", "1");
  release("/hold2", "2");
  client.receive();
  client.receive();
  EXPECT_THAT(client.receive(), EndsWith("GET /third [] "));
}

TEST_F(HttpServerTest, AcceptsChunkedBodies) {
  serve();
  TestClient client(io_, address_);
  client.send("POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n");
  client.send("5;ext=1\r\npedia\r\n0\r\nTrailer: x\r\n\r\nGET /next HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(), EndsWith("POST /c [] Wikipedia"));
  EXPECT_THAT(client.receive(), EndsWith("GET /next [] "));
}

// Who looks at heads on the way here sees no trailer, and the first or the last of two.
TEST_F(HttpServerTest, WhoAsksIsSaidOnceAndInTheHead) {
  serve();
  TestClient client(io_, address_);
  client.send(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nAuthorization: b\r\nX-Test: "
      "late\r\n\r\n");
  EXPECT_THAT(client.receive(), HasSubstr("POST / [] x"));
  for (const char* name : {"Host", "Authorization", "Origin"}) {
    for (const char* first : {"", "a"}) {
      TestClient again(io_, address_);
      again.send(fmt::format("GET / HTTP/1.1\r\n{0}: {1}\r\nX: y\r\n{0}: b\r\n\r\n", name, first));
      EXPECT_THAT(again.receive_until_closed(), StartsWith("HTTP/1.1 400")) << name;
    }
  }
  TestClient many(io_, address_);
  many.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
  std::string trailers;
  for (int i = 0; i < 300; ++i) trailers += "a: b\r\n";
  many.send(trailers + "\r\n");
  EXPECT_THAT(many.receive_until_closed(), StartsWith("HTTP/1.1 431"));
}

TEST_F(HttpServerTest, ALastChunkThatIsNotWholeIsWaitedFor) {
  serve();
  const std::string_view chunks = "2\r\nab\r\n0\r\nT: x\r\n\r\n", none = "0\r\n\r\n";
  for (const std::string_view body : {none, chunks}) {
    for (std::size_t at_once = 0; at_once < body.size(); ++at_once) {
      TestClient client(io_, address_);
      client.send(fmt::format("POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{}", body.substr(0, at_once)));
      for (const char rest : body.substr(at_once)) {
        turn();
        client.send({&rest, 1});
      }
      EXPECT_THAT(client.receive(), EndsWith(body == none ? "POST /c [] " : "POST /c [] ab")) << at_once;
    }
  }
  TestClient client(io_, address_);
  client.send("POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n");
  turn();
  client.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(), HasSubstr(" 400 "));
}

TEST_F(HttpServerTest, InvitesABodyThatIsHeldBack) {
  serve();
  TestClient client(io_, address_);
  client.send("POST /e HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ("HTTP/1.1 100 Continue\r\n\r\n", client.receive());
  client.send("body");
  EXPECT_THAT(client.receive(), EndsWith("POST /e [] body"));
}

TEST_F(HttpServerTest, HeadHasALengthButNoBody) {
  serve();
  TestClient client(io_, address_);
  client.send("HEAD /h HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string answer = client.receive_until_closed();
  EXPECT_THAT(answer, HasSubstr("Content-Length: 11\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, ClosesAfterTheAnswerWhenAskedTo) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /a HTTP/1.1\r\nConnection: close\r\n\r\nGET /ignored HTTP/1.1\r\n\r\n");
  const std::string answer = client.receive_until_closed();
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(targets_, ElementsAre("/a"));
  client.close();
  EXPECT_TRUE(run_until(io_, [&] { return server_->connections() == 0; }));
}

TEST_F(HttpServerTest, ServesHttp10Clients) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(client.receive(), HasSubstr("Connection: keep-alive\r\n"));
  client.send("GET /b HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.receive_until_closed(), HasSubstr("Connection: close\r\n"));
}

struct Refusal {
  std::string name;
  std::string request;
  std::string status;
};

class HttpServerRefusal : public HttpServerTest, public ::testing::WithParamInterface<Refusal> {};

TEST_P(HttpServerRefusal, IsAnsweredAndTheConnectionCloses) {
  serve({.header_bytes = 4096, .body_bytes = 1000});
  TestClient client(io_, address_);
  client.send(GetParam().request);
  EXPECT_THAT(client.receive_until_closed(), StartsWith("HTTP/1.1 " + GetParam().status));
  EXPECT_TRUE(targets_.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Malformed, HttpServerRefusal,
    ::testing::Values(
        Refusal{"NotHttp", "\x16\x03\x01 hello\r\n\r\n", "400"}, Refusal{"NoVersion", "GET /\r\n\r\n", "400"},
        Refusal{"Http2", "GET / HTTP/2.0\r\n\r\n", "400"},
        Refusal{"BadHeaderName", "GET / HTTP/1.1\r\nbad header: 1\r\n\r\n", "400"},
        Refusal{"NegativeLength", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400"},
        Refusal{"TwoLengths", "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
        Refusal{"LengthAndChunked", "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "400"},
        Refusal{"OtherCoding", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
                "400"},
        Refusal{"BadChunk", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
        Refusal{"DeclaredBody", "POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n", "413"},
        Refusal{"ChunkedBody", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'x'),
                "413"},
        Refusal{"OneHeader", "GET / HTTP/1.1\r\nX: " + std::string(5000, 'x') + "\r\n\r\n", "431"},
        Refusal{"UnendedHeader", "GET / HTTP/1.1\r\nX: " + std::string(80'000, 'x'), "431"},
        Refusal{"ManyHeaders",
                [] {
                  std::string request = "GET / HTTP/1.1\r\n";
                  for (int i = 0; i < 2000; ++i) request += "A: b\r\n";
                  return request + "\r\n";
                }(),
                "431"}),
    [](const auto& instance) { return instance.param.name; });

TEST_F(HttpServerTest, RefusesOnlyAfterEarlierAnswers) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /hold HTTP/1.1\r\n\r\nnonsense\r\n\r\n");
  ASSERT_TRUE(wait_held(1));
  release("/hold", "first");
  EXPECT_THAT(client.receive(), EndsWith("first"));
  EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpServerTest, ADroppedExchangeIsAnswered500) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /drop HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n"));
}

TEST_F(HttpServerTest, TellsWhenTheClientOfAHeldRequestDisconnects) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /hold HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(wait_held(1));
  EXPECT_TRUE(disconnected_.empty());
  client.close();
  ASSERT_TRUE(run_until(io_, [&] { return !disconnected_.empty(); }));
  release("/hold", "to nobody");
  EXPECT_TRUE(run_until(io_, [&] { return server_->connections() == 0; }));
  EXPECT_THAT(disconnected_, ElementsAre("/hold"));
}

TEST_F(HttpServerTest, DoesNotTellOfADisconnectAfterTheAnswer) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /hold HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(wait_held(1));
  release("/hold", "x");
  client.receive();
  client.close();
  ASSERT_TRUE(run_until(io_, [&] { return server_->connections() == 0; }));
  EXPECT_TRUE(disconnected_.empty());
}

TEST_F(HttpServerTest, AnswersAClientThatEndedItsSendingSide) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /hold HTTP/1.1\r\n\r\n");
  client.end_sending();
  ASSERT_TRUE(run_until(io_, [&] { return !disconnected_.empty(); }));
  release("/hold", "still here");
  EXPECT_THAT(client.receive_until_closed(), EndsWith("still here"));
  EXPECT_EQ(0u, server_->connections());
}

TEST_F(HttpServerTest, AnExchangeMayOutliveItsServer) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /hold HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(wait_held(1));
  server_.reset();
  release("/hold", "late");
  EXPECT_EQ("", client.receive_until_closed());
  EXPECT_TRUE(disconnected_.empty());
}

TEST_F(HttpServerTest, SendsALargeAnswerToASlowReader) {
  serve({.body_bytes = 32 << 20});
  TestClient client(io_, address_);
  const std::string body(20 << 20, 'b');
  client.send("GET /hold HTTP/1.1\r\n\r\nGET /after HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(wait_held(1));
  release("/hold", body);
  const std::string answer = client.receive();
  EXPECT_TRUE(answer.ends_with(body));
  EXPECT_THAT(client.receive(), EndsWith("GET /after [] "));
}

TEST_F(HttpServerTest, ReceivesALargeBody) {
  serve();
  TestClient client(io_, address_);
  const std::string body(6 << 20, 'p');
  client.send(fmt::format("POST /big HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.size()));
  client.send(body);
  EXPECT_TRUE(client.receive().ends_with("POST /big [] " + body));
}

TEST_F(HttpServerTest, ClosesIdleConnections) {
  serve({.idle_timeout = std::chrono::milliseconds(20)});
  TestClient client(io_, address_);
  client.send("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ("", client.receive_until_closed());
  EXPECT_EQ(0u, server_->connections());
}

TEST_F(HttpServerTest, AnswersARequestThatNeverEndsWith408) {
  serve({.transfer_timeout = std::chrono::milliseconds(20)});
  TestClient client(io_, address_);
  client.send("POST /a HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_THAT(client.receive_until_closed(), StartsWith("HTTP/1.1 408"));
}

TEST_F(HttpServerTest, AHeldRequestDoesNotTimeOut) {
  serve({.idle_timeout = std::chrono::milliseconds(4), .transfer_timeout = std::chrono::milliseconds(4)});
  TestClient client(io_, address_);
  client.send("GET /hold HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(wait_held(1));
  io_.restart();
  io_.run_for(std::chrono::milliseconds(30));
  release("/hold", "patient");
  EXPECT_THAT(client.receive(), EndsWith("patient"));
}

TEST_F(HttpServerTest, TurnsConnectionsAboveTheLimitAwayWhereAllWaitForAnswers) {
  serve({.connections = 1});
  TestClient first(io_, address_);
  first.send("GET /hold HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(wait_held(1));
  TestClient second(io_, address_);
  EXPECT_THAT(second.receive_until_closed(), StartsWith("HTTP/1.1 503"));
  release("/hold", "answered");
  EXPECT_THAT(first.receive(), EndsWith("answered"));
  first.close();
  ASSERT_TRUE(run_until(io_, [&] { return server_->connections() == 0; }));
  TestClient third(io_, address_);
  third.send("GET /b HTTP/1.1\r\n\r\n");
  EXPECT_THAT(third.receive(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, ConnectionsThatIdleMakeRoomTheOldestFirst) {
  serve({.connections = 3});
  TestClient oldest(io_, address_);
  TestClient working(io_, address_);
  working.send("GET /hold HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(wait_held(1));
  TestClient younger(io_, address_);
  younger.send("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_THAT(younger.receive(), StartsWith("HTTP/1.1 200"));
  TestClient newcomer(io_, address_);
  newcomer.send("GET /b HTTP/1.1\r\n\r\n");
  EXPECT_THAT(newcomer.receive(), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(oldest.receive_until_closed(), "");
  younger.send("GET /c HTTP/1.1\r\n\r\n");
  EXPECT_THAT(younger.receive(), StartsWith("HTTP/1.1 200"));
  release("/hold", "kept");
  EXPECT_THAT(working.receive(), EndsWith("kept"));
}

TEST_F(HttpServerTest, RequestsThatDripInMakeRoom) {
  serve({.connections = 1});
  TestClient dripping(io_, address_);
  dripping.send("GET /never-comp");
  ASSERT_TRUE(run_until(io_, [&] { return server_->connections() == 1; }));
  EXPECT_TRUE(run_until(io_, [&] {
    TestClient other(io_, address_);
    other.send("GET /a HTTP/1.1\r\nConnection: close\r\n\r\n");
    return other.receive_until_closed().starts_with("HTTP/1.1 200");
  }));
  EXPECT_EQ(dripping.receive_until_closed(), "");
}

TEST_F(HttpServerTest, AHandlerCannotInjectHeaders) {
  HttpServer server(io_, {}, [](HttpExchange exchange) {
    exchange.respond({.status = 200, .headers = {{"Content-Type", "a\r\nSet-Cookie: b"}}, .body = {}});
  });
  TestClient client(io_, server.listen("127.0.0.1:0").value());
  client.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(), Not(HasSubstr("\r\nSet-Cookie")));
}

TEST_F(HttpServerTest, StopListeningKeepsConnections) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /a HTTP/1.1\r\n\r\n");
  client.receive();
  server_->stop_listening();
  client.send("GET /b HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(), EndsWith("GET /b [] "));
}

TEST_F(HttpServerTest, ListensOnAUnixSocketAndRemovesItAgain) {
  const std::string path = ::testing::TempDir() + "fairlead_http_test.sock";
  bool is_local = false;
  {
    HttpServer server(io_, {}, [&](HttpExchange exchange) {
      is_local = exchange.request().peer_is_local();
      exchange.respond({});
    });
    ASSERT_TRUE(server.listen("unix:" + path));
    EXPECT_EQ(Errc::kConflict, server.listen("unix:" + path).error().code);
    TestClient client(io_, "unix:" + path);
    client.send("GET / HTTP/1.1\r\n\r\n");
    EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_TRUE(is_local);
  EXPECT_NE(0, ::access(path.c_str(), F_OK));
}

TEST_F(HttpServerTest, ReplacesTheSocketOfADeadServer) {
  const std::string path = ::testing::TempDir() + "fairlead_stale.sock";
  const auto left_behind = open_listener("unix:" + path);
  ASSERT_TRUE(left_behind);
  ::close(left_behind->fd);
  HttpServer server(io_, {}, [](HttpExchange) {});
  EXPECT_TRUE(server.listen("unix:" + path));
}

TEST_F(HttpServerTest, AdoptsAListener) {
  const auto socket = open_listener("[::1]:0");
  if (!socket) GTEST_SKIP() << "no IPv6 loopback: " << socket.error().message;
  HttpServer server(io_, {}, [](HttpExchange exchange) { exchange.respond({.status = 204}); });
  ASSERT_TRUE(server.adopt_listener(socket->fd));
  TestClient client(io_, socket->address);
  client.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ("HTTP/1.1 204 No Content\r\n\r\n", client.receive());
}

TEST_F(HttpServerTest, RefusesToAdoptWhatDoesNotListen) {
  HttpServer server(io_, {}, [](HttpExchange) {});
  EXPECT_EQ(Errc::kInvalidArgument, server.adopt_listener(0).error().code);
}

TEST(ListenAddress, ErrorsNameTheValue) {
  for (const char* address : {"127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "nowhere.example:80", "[::1:80", "unix:"}) {
    const auto listener = open_listener(address);
    ASSERT_FALSE(listener) << address;
    EXPECT_EQ(Errc::kInvalidArgument, listener.error().code) << address;
  }
  EXPECT_THAT(open_listener("unix:/" + std::string(200, 'x')).error().message, HasSubstr("1 to 107"));
}

}  // namespace
}  // namespace fairlead::net
