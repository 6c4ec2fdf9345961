// Bodies that go to a sink as they arrive, from clients that behave and from those that do not.
#include "net/body_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "net/http_server.h"
#include "net/http_test_client.h"

namespace fairlead::net {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

class BodySinkTest : public ::testing::Test {
 protected:
  // Remembers what it got, and is full when it is told to be.
  class Sink : public BodySink {
   public:
    explicit Sink(BodySinkTest& test) : test_(test) { ++test_.sinks_; }
    ~Sink() override { --test_.sinks_; }
    void append(std::string_view bytes) override { test_.arrived_ += bytes; }
    bool is_full() const override { return test_.full_; }
    using BodySink::tell_room;

   private:
    BodySinkTest& test_;
  };

  void serve(HttpLimits limits = {}) {
    server_ = std::make_unique<HttpServer>(
        io_, limits, [this](HttpExchange exchange) { handle(std::move(exchange)); },
        [this](HttpRequest& head) { return sink_for(head); });
    address_ = server_->listen("127.0.0.1:0").value();
  }

  // "/sink..." goes to one.
  std::shared_ptr<BodySink> sink_for(HttpRequest& head) {
    asked_.emplace_back(fmt::format("{} {}", head.target(), head.header("X-Test")));
    if (!head.target().starts_with("/sink")) return nullptr;
    auto sink = std::make_shared<Sink>(*this);
    latest_ = sink;
    return sink;
  }

  void handle(HttpExchange exchange) {
    handled_.emplace_back(exchange.request().target());
    const bool has_sink = exchange.request().take_sink() != nullptr;
    const std::size_t collected = exchange.request().body().size();
    exchange.respond({.body = fmt::format("{} {}", has_sink ? "sink" : "collected", collected)});
  }

  void settle() {
    io_.restart();
    io_.poll();
  }
  bool wait_for(std::string_view arrived) {
    return run_until(io_, [&] { return arrived_ == arrived; });
  }

  boost::asio::io_context io_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  std::vector<std::string> asked_, handled_;
  std::string arrived_;
  std::weak_ptr<Sink> latest_;
  bool full_ = false;
  int sinks_ = 0;
  std::unique_ptr<HttpServer> server_;
  std::string address_;
};

TEST_F(BodySinkTest, ABodyGoesToItsSinkAsItArrives) {
  serve();
  TestClient client(io_, address_);
  client.send("PUT /sink HTTP/1.1\r\nX-Test: v\r\nContent-Length: 10\r\n\r\nfirst");
  ASSERT_TRUE(wait_for("first"));
  EXPECT_TRUE(handled_.empty());
  client.send("-last");
  EXPECT_THAT(client.receive(), EndsWith("sink 0"));
  EXPECT_EQ("first-last", arrived_);
  EXPECT_THAT(asked_, ElementsAre("/sink v"));
  EXPECT_EQ(0, sinks_);
}

TEST_F(BodySinkTest, RequestsWithoutABodyAndOtherRoutesHaveNone) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /sink HTTP/1.1\r\n\r\nPUT /sink HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(client.receive(), EndsWith("collected 0"));
  EXPECT_THAT(client.receive(), EndsWith("collected 0"));
  client.send("PUT /other HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_THAT(client.receive(), EndsWith("collected 4"));
  EXPECT_THAT(asked_, ElementsAre("/other "));
}

TEST_F(BodySinkTest, ChunksAndTheRequestBehindThemAreToldApart) {
  serve();
  TestClient client(io_, address_);
  client.send("PUT /sink HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n");
  client.send("5\r\npedia\r\n0\r\n\r\nPUT /other HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_THAT(client.receive(), EndsWith("sink 0"));
  EXPECT_THAT(client.receive(), EndsWith("collected 4"));
  EXPECT_EQ("Wikipedia", arrived_);
}

TEST_F(BodySinkTest, ABodyThatIsHeldBackIsInvited) {
  serve();
  TestClient client(io_, address_);
  client.send("PUT /sink HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ("HTTP/1.1 100 Continue\r\n\r\n", client.receive());
  EXPECT_EQ(1, sinks_);
  client.send("body");
  EXPECT_THAT(client.receive(), EndsWith("sink 0"));
}

TEST_F(BodySinkTest, MalformedChunksEndTheSinkAndReachNoHandler) {
  serve();
  TestClient client(io_, address_);
  client.send("PUT /sink HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\nzz\r\n");
  EXPECT_THAT(client.receive_until_closed(), StartsWith("HTTP/1.1 400"));
  EXPECT_TRUE(handled_.empty());
  EXPECT_EQ(0, sinks_);
}

TEST_F(BodySinkTest, TheBoundOfBodiesHoldsForSinksToo) {
  serve({.body_bytes = 1000});
  TestClient chunked(io_, address_);
  chunked.send("PUT /sink HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n" + std::string(1000, 'x') +
               "\r\n1\r\ny");
  EXPECT_THAT(chunked.receive_until_closed(), StartsWith("HTTP/1.1 413"));
  EXPECT_EQ(1000u, arrived_.size());
  TestClient declared(io_, address_);
  declared.send("PUT /sink HTTP/1.1\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_THAT(declared.receive_until_closed(), StartsWith("HTTP/1.1 413"));
  EXPECT_TRUE(handled_.empty());
  EXPECT_EQ(0, sinks_);
}

TEST_F(BodySinkTest, WhatIsSentBeyondTheLengthIsTheNextRequest) {
  serve();
  TestClient client(io_, address_);
  client.send("PUT /sink HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody, and more of it\r\n\r\n");
  EXPECT_THAT(client.receive(), EndsWith("sink 0"));
  EXPECT_THAT(client.receive_until_closed(), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ("body", arrived_);
}

TEST_F(BodySinkTest, AClientThatDiesInTheMiddleEndsTheSink) {
  serve();
  for (const bool at_once : {true, false}) {
    arrived_.clear();
    TestClient client(io_, address_);
    client.send("PUT /sink HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf");
    ASSERT_TRUE(wait_for("half"));
    EXPECT_EQ(1, sinks_);
    at_once ? client.close() : client.end_sending();
    EXPECT_TRUE(run_until(io_, [&] { return sinks_ == 0 && server_->connections() == 0; }));
  }
  EXPECT_TRUE(handled_.empty());
}

TEST_F(BodySinkTest, AnUploadThatIsCutOffBehindAnUnansweredRequestEndsTheSink) {
  HttpExchange held;
  HttpServer server(
      io_, {}, [&](HttpExchange exchange) { held = std::move(exchange); },
      [this](HttpRequest& head) { return sink_for(head); });
  TestClient client(io_, server.listen("127.0.0.1:0").value());
  client.send("GET /a HTTP/1.1\r\n\r\nPUT /sink HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf");
  ASSERT_TRUE(wait_for("half"));
  client.end_sending();
  EXPECT_TRUE(run_until(io_, [&] { return sinks_ == 0; }));
  held.respond({.body = "answered"});
  EXPECT_THAT(client.receive_until_closed(), EndsWith("answered"));
}

TEST_F(BodySinkTest, ABodyThatDripsInTimesOutAndOthersAreServedMeanwhile) {
  serve({.transfer_timeout = std::chrono::milliseconds(50)});
  TestClient slow(io_, address_);
  slow.send("PUT /sink HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
  TestClient other(io_, address_);
  int served = 0;
  EXPECT_TRUE(run_until(io_, [&] {
    slow.send("x");
    other.send("GET /a HTTP/1.1\r\n\r\n");
    served += other.receive().starts_with("HTTP/1.1 200") ? 1 : 0;
    return !asked_.empty() && sinks_ == 0;
  }));
  EXPECT_THAT(slow.receive_until_closed(), StartsWith("HTTP/1.1 408"));
  EXPECT_GT(served, 0);
  EXPECT_THAT(handled_, ::testing::Each("/a"));
}

TEST_F(BodySinkTest, AFullSinkIsGivenNoMoreUntilItHasRoom) {
  serve();
  full_ = true;
  TestClient client(io_, address_);
  const std::string body(4 << 20, 'b');
  client.send(fmt::format("PUT /sink HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.size()));
  std::thread sender([fd = client.fd(), &body] {
    for (std::size_t sent = 0; sent < body.size();) {
      const ssize_t count = ::send(fd, body.data() + sent, body.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<std::size_t>(count);
    }
  });
  ASSERT_TRUE(run_until(io_, [&] { return sinks_ == 1; }));
  for (int i = 0; i < 100; ++i) settle();
  EXPECT_LE(arrived_.size(), std::size_t{64} << 10);
  TestClient other(io_, address_);
  other.send("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_THAT(other.receive(), EndsWith("collected 0"));
  full_ = false;
  latest_.lock()->tell_room();
  EXPECT_THAT(client.receive(), EndsWith("sink 0"));
  sender.join();
  EXPECT_TRUE(arrived_ == body);
}

// With its input full the connection reads no more, so nothing but the sink knows of it.
TEST_F(BodySinkTest, AConnectionWhoseInputIsFullWaitsForItsSink) {
  serve();
  TestClient client(io_, address_);
  const std::string body(120 << 10, 'b');
  client.send(fmt::format("PUT /sink HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", body.size() + 1, 'a'));
  ASSERT_TRUE(wait_for("a"));
  full_ = true;
  client.send(body);
  for (int i = 0; i < 100; ++i) settle();
  ASSERT_EQ(1, sinks_);
  full_ = false;
  latest_.lock()->tell_room();
  EXPECT_THAT(client.receive(), EndsWith("sink 0"));
  EXPECT_TRUE(arrived_ == "a" + body);
}

TEST_F(BodySinkTest, ASinkThatIsFullAtTheEndOfABodyHoldsNothingUp) {
  serve();
  full_ = true;
  TestClient client(io_, address_);
  client.send("PUT /sink HTTP/1.1\r\nContent-Length: 4\r\n\r\nbodyGET /next HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(), EndsWith("sink 0"));
  EXPECT_THAT(client.receive(), EndsWith("collected 0"));
}

TEST_F(BodySinkTest, AClosedServerEndsItsSinks) {
  serve();
  TestClient client(io_, address_);
  client.send("PUT /sink HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf");
  ASSERT_TRUE(wait_for("half"));
  const std::shared_ptr<Sink> kept = latest_.lock();
  server_->close();
  EXPECT_EQ(1, kept.use_count());
  kept->tell_room();  // nobody listens any more
  settle();
}

}  // namespace
}  // namespace fairlead::net
