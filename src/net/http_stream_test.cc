// Bodies that are written over time: through sockets, with writers on this thread and on others.
#include "net/http_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "net/http_server.h"
#include "net/http_test_client.h"

namespace fairlead::net {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// The body within chunks; nothing when they are not whole and ended.
std::optional<std::string> unchunk(std::string_view text) {
  std::string body;
  while (true) {
    const std::size_t line = text.find("\r\n");
    if (line == std::string_view::npos) return std::nullopt;
    const std::size_t size = std::stoul(std::string(text.substr(0, line)), nullptr, 16);
    text.remove_prefix(line + 2);
    if (text.size() < size + 2 || text.substr(size, 2) != "\r\n") return std::nullopt;
    body += text.substr(0, size);
    text.remove_prefix(size + 2);
    if (size == 0) return text.empty() ? std::optional(body) : std::nullopt;
  }
}

std::optional<std::string> body_of(const std::string& answer) {
  return unchunk(std::string_view(answer).substr(answer.find("\r\n\r\n") + 4));
}

class HttpStreamTest : public ::testing::Test {
 protected:
  // Answers "/plain" at once, all else with a stream of `limit` bytes whose writers are kept.
  void serve(std::size_t limit = kBodyStreamBytes, HttpLimits limits = {}) {
    server_ = std::make_unique<HttpServer>(io_, limits, [this, limit](HttpExchange exchange) {
      if (exchange.request().target() == "/plain") return exchange.respond({.body = "plain"});
      if (exchange.request().target() == "/hold") return held_.push_back(std::move(exchange));
      respond(std::move(exchange), limit);
    });
    address_ = server_->listen("127.0.0.1:0").value();
  }

  void respond(HttpExchange exchange, std::size_t limit) {
    auto [writer, body] = make_body_stream(limit);
    writer.on_change([this] { ++changes_; });
    writers_.push_back(std::move(writer));
    exchange.respond({.status = 200, .stream = std::move(body)});
  }

  void get(TestClient& client, std::string_view target = "/stream", std::string_view version = "1.1") {
    const std::size_t before = writers_.size() + held_.size();
    client.send(fmt::format("GET {} HTTP/{}\r\n\r\n", target, version));
    ASSERT_TRUE(run_until(io_, [&] { return writers_.size() + held_.size() > before; }));
  }

  // Whole answers arrive with the connection's end, which the client asks for in a last request.
  std::string rest_of(TestClient& client) {
    client.send("GET /plain HTTP/1.1\r\nConnection: close\r\n\r\n");
    return client.receive_until_closed();
  }

  void settle() {
    io_.restart();
    io_.poll();
  }

  boost::asio::io_context io_{1};
  std::vector<BodyWriter> writers_;
  std::vector<HttpExchange> held_;
  std::unique_ptr<HttpServer> server_;
  std::string address_;
  int changes_ = 0;
};

TEST_F(HttpStreamTest, PartsArriveAsTheyAreWrittenAndTheConnectionIsKept) {
  serve();
  TestClient client(io_, address_);
  get(client);
  EXPECT_THAT(client.receive(), EndsWith("Transfer-Encoding: chunked\r\n\r\n"));
  EXPECT_EQ(BodyWrite::kTaken, writers_[0].write("first"));
  EXPECT_EQ("5\r\nfirst\r\n", client.receive_at_least(10));
  EXPECT_EQ(BodyWrite::kTaken, writers_[0].write("second"));
  EXPECT_EQ("6\r\nsecond\r\n", client.receive_at_least(11));
  writers_[0].finish();
  EXPECT_EQ("0\r\n\r\n", client.receive_at_least(5));
  client.send("GET /plain HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(), EndsWith("plain"));
  EXPECT_EQ(0, changes_);
}

TEST_F(HttpStreamTest, WhatWasWrittenBeforeTheAnswerIsSentToo) {
  serve();
  TestClient client(io_, address_);
  get(client, "/hold");
  auto [writer, body] = make_body_stream();
  writer.write("early");
  writer.finish();
  held_[0].respond({.body = "not sent", .stream = std::move(body)});
  const std::string answer = rest_of(client);
  EXPECT_THAT(answer, HasSubstr("\r\n\r\n5\r\nearly\r\n0\r\n\r\nHTTP/1.1 200 OK"));
  EXPECT_THAT(answer, Not(HasSubstr("not sent")));
}

TEST_F(HttpStreamTest, AnEmptyStreamIsAnEmptyBody) {
  serve();
  TestClient client(io_, address_);
  get(client);
  writers_[0].write("");
  writers_[0].finish();
  EXPECT_THAT(rest_of(client), HasSubstr("\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK"));
}

TEST_F(HttpStreamTest, AnHttp10ClientReadsUntilTheConnectionCloses) {
  serve();
  TestClient client(io_, address_);
  get(client, "/stream", "1.0");
  writers_[0].write("one,");
  settle();
  writers_[0].write("two");
  writers_[0].finish();
  const std::string answer = client.receive_until_closed();
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("chunked")));
  EXPECT_THAT(answer, EndsWith("\r\n\r\none,two"));
}

TEST_F(HttpStreamTest, HeadHasTheHeadersAndItsWriterNoReader) {
  serve();
  TestClient client(io_, address_);
  client.send("HEAD /stream HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(), EndsWith("Transfer-Encoding: chunked\r\n\r\n"));
  EXPECT_TRUE(writers_[0].is_gone());
  EXPECT_EQ(BodyWrite::kGone, writers_[0].write("x"));
  client.send("GET /plain HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(), EndsWith("plain"));
}

TEST_F(HttpStreamTest, AnswersOfPipelinedRequestsWaitForTheStream) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /stream HTTP/1.1\r\n\r\nGET /plain HTTP/1.1\r\n\r\nGET /stream HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until(io_, [&] { return writers_.size() == 2; }));
  writers_[1].write("later");
  writers_[1].finish();
  EXPECT_THAT(client.receive(), EndsWith("chunked\r\n\r\n"));
  writers_[0].write("now");
  writers_[0].finish();
  const std::string plain = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain";
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string rest = "3\r\nnow\r\n0\r\n\r\n" + plain + head + "5\r\nlater\r\n0\r\n\r\n";
  EXPECT_EQ(rest, client.receive_at_least(rest.size()));
}

TEST_F(HttpStreamTest, AWriterThatIsDroppedCutsTheBodyOff) {
  serve();
  TestClient client(io_, address_);
  get(client);
  writers_[0].write("half");
  settle();
  writers_.clear();
  const std::string answer = client.receive_until_closed();
  EXPECT_THAT(answer, EndsWith("4\r\nhalf\r\n"));
  EXPECT_FALSE(body_of(answer));
  EXPECT_EQ(0u, server_->connections());
}

TEST_F(HttpStreamTest, NothingIsTakenAboveTheLimitUntilTheClientReads) {
  serve(1000);
  TestClient client(io_, address_);
  get(client);
  BodyWriter& writer = writers_[0];
  EXPECT_EQ(BodyWrite::kFull, writer.write(std::string(1001, 'x')));
  EXPECT_EQ(BodyWrite::kTaken, writer.write(std::string(990, 'x')));
  EXPECT_EQ(10u, writer.room());
  EXPECT_EQ(BodyWrite::kFull, writer.write("eleven byte"));
  EXPECT_EQ(BodyWrite::kTaken, writer.write("ten bytes."));
  ASSERT_TRUE(run_until(io_, [&] { return writer.room() == 1000; }));
  EXPECT_EQ(1, changes_);  // the writer, which was refused, hears of the room once
  writer.finish();
  EXPECT_EQ(1000u, body_of(client.receive_at_least(47 + 1007 + 5)).value().size());
}

// The socket's buffers fill, then the stream's; what the client reads makes room again, and the bytes come in order.
TEST_F(HttpStreamTest, AWriterFasterThanItsReaderIsHeldAtTheLimit) {
  constexpr std::size_t kLimit = 64 << 10;
  constexpr std::size_t kTotal = 32 << 20;
  serve(kLimit);
  TestClient client(io_, address_);
  get(client);
  std::string sent;
  const auto fill = [&] {
    while (sent.size() < kTotal) {
      const std::string part(1 + sent.size() % 5000, static_cast<char>('a' + sent.size() % 26));
      if (writers_[0].write(part) == BodyWrite::kFull) return;
      sent += part;
    }
    writers_[0].finish();
  };
  fill();
  EXPECT_LE(sent.size(), kLimit);
  for (int quiet = 0; quiet < 3; ++quiet) {  // until the kernel takes no more
    const std::size_t before = sent.size();
    settle();
    fill();
    if (sent.size() != before) quiet = 0;
  }
  ASSERT_LT(sent.size(), kTotal) << "the kernel buffers everything";
  EXPECT_LT(writers_[0].room(), 5000u);
  std::string answer;
  ASSERT_TRUE(run_until(io_, [&] {
    answer += client.receive_at_least(1);
    fill();
    return answer.ends_with("\r\n0\r\n\r\n");
  }));
  EXPECT_TRUE(body_of(answer) == sent);
  EXPECT_GT(changes_, 0);
}

TEST_F(HttpStreamTest, AClientThatReadsNothingIsCutOff) {
  serve(64 << 10, {.transfer_timeout = std::chrono::milliseconds(20)});
  TestClient client(io_, address_);
  get(client);
  ASSERT_TRUE(run_until(io_, [&] {
    writers_[0].write(std::string(60'000, 'x'));
    return writers_[0].is_gone();
  }));
  EXPECT_EQ(BodyWrite::kGone, writers_[0].write("x"));
  EXPECT_EQ(0u, server_->connections());
  EXPECT_GE(changes_, 1);
}

TEST_F(HttpStreamTest, AQuietStreamDoesNotTimeOut) {
  serve(1000, {.idle_timeout = std::chrono::milliseconds(4), .transfer_timeout = std::chrono::milliseconds(4)});
  TestClient client(io_, address_);
  get(client);
  io_.restart();
  io_.run_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(writers_[0].is_gone());
  writers_[0].finish();
  client.receive();
  EXPECT_EQ("0\r\n\r\n", client.receive_at_least(5));
}

TEST_F(HttpStreamTest, TheWriterHearsOfADisconnect) {
  serve();
  TestClient client(io_, address_);
  get(client);
  client.close();
  ASSERT_TRUE(run_until(io_, [&] { return changes_ == 1; }));
  EXPECT_TRUE(writers_[0].is_gone());
  EXPECT_EQ(0u, server_->connections());
  writers_[0].finish();
  EXPECT_EQ(1, changes_);
}

TEST_F(HttpStreamTest, AStreamBehindAnUnansweredRequestHearsOfADisconnectToo) {
  serve();
  TestClient client(io_, address_);
  client.send("GET /hold HTTP/1.1\r\n\r\nGET /stream HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until(io_, [&] { return writers_.size() == 1; }));
  client.close();
  ASSERT_TRUE(run_until(io_, [&] { return writers_[0].is_gone(); }));
  EXPECT_EQ(1, changes_);
}

TEST_F(HttpStreamTest, AClientThatEndsItsSendingSideGetsWhatIsFinishedAndNoOpenStream) {
  serve();
  TestClient finished(io_, address_);
  get(finished, "/hold");
  finished.end_sending();
  settle();
  auto [writer, body] = make_body_stream();
  writer.write("whole");
  writer.finish();
  held_[0].respond({.stream = std::move(body)});
  EXPECT_EQ("whole", body_of(finished.receive_until_closed()));
  TestClient open(io_, address_);
  get(open, "/hold");
  open.end_sending();
  settle();
  respond(std::move(held_[1]), 1000);
  EXPECT_TRUE(run_until(io_, [&] { return changes_ == 1; }));
  EXPECT_TRUE(writers_[0].is_gone());
}

TEST_F(HttpStreamTest, AStreamOfAClosedServerIsGoneAndHearsNothing) {
  serve();
  TestClient client(io_, address_);
  get(client);
  server_.reset();
  EXPECT_TRUE(writers_[0].is_gone());
  EXPECT_EQ(BodyWrite::kGone, writers_[0].write("x"));
  settle();
  EXPECT_EQ(0, changes_);
}

TEST_F(HttpStreamTest, AnAnswerThatReachesNobodyTellsItsWriter) {
  serve();
  TestClient client(io_, address_);
  get(client, "/hold");
  server_.reset();
  respond(std::move(held_[0]), 1000);
  EXPECT_TRUE(writers_[0].is_gone());
  EXPECT_EQ(1, changes_);
}

TEST_F(HttpStreamTest, AWriterMayBeHeldByItsOwnCallback) {  // the leak checker says whether it is freed
  serve();
  TestClient client(io_, address_);
  get(client, "/hold");
  get(client, "/hold");
  for (HttpExchange& exchange : held_) {
    auto [writer, body] = make_body_stream();
    const auto shared = std::make_shared<std::optional<BodyWriter>>();
    writer.on_change([shared] { (*shared)->is_gone(); });
    shared->emplace(std::move(writer));
    if (&exchange == held_.data()) (*shared)->finish();
    exchange.respond({.stream = std::move(body)});
  }
  client.close();
  EXPECT_TRUE(run_until(io_, [&] { return server_->connections() == 0; }));
}

TEST_F(HttpStreamTest, OthersAreServedBesideAFastStream) {
  serve(1 << 20);
  TestClient fast(io_, address_);
  get(fast);
  const std::string part(64 << 10, 'x');
  ASSERT_TRUE(run_until(io_, [&] {  // whatever is sent at once is refilled at once
    while (writers_[0].write(part) == BodyWrite::kTaken) {
    }
    fast.receive_at_least(1);
    TestClient other(io_, address_);
    other.send("GET /plain HTTP/1.1\r\nConnection: close\r\n\r\n");
    return other.receive().ends_with("plain");
  }));
}

// ---- writers on other threads

TEST_F(HttpStreamTest, TinyWritesOfAnotherThreadArriveInOrder) {
  serve(10'000);
  TestClient client(io_, address_);
  get(client);
  std::string expected;
  for (int i = 0; i < 50'000; ++i) expected += fmt::format("{},", i);
  std::thread writer([&] {
    for (int i = 0; i < 50'000; ++i) {
      while (writers_[0].write(fmt::format("{},", i)) == BodyWrite::kFull) std::this_thread::yield();
    }
    writers_[0].finish();
  });
  std::string answer;
  EXPECT_TRUE(run_until(io_, [&] {
    answer += client.receive_at_least(1);
    return answer.ends_with("\r\n0\r\n\r\n");
  }));
  writer.join();
  EXPECT_TRUE(body_of(answer) == expected);
}

TEST_F(HttpStreamTest, AnotherThreadFinishesWhileTheClientLeaves) {
  serve(1000);
  for (int round = 0; round < 200; ++round) {
    TestClient client(io_, address_);
    get(client);
    std::thread writer([&, mine = std::move(writers_.back())]() mutable {
      for (int i = 0; i < round; ++i) mine.write("some bytes");
      if (round % 3 > 0) mine.finish();  // else it is dropped
    });
    if (round % 2 == 0) client.close();
    settle();
    writer.join();
    writers_.clear();
    client.close();
    ASSERT_TRUE(run_until(io_, [&] { return server_->connections() == 0; })) << round;
  }
}

TEST_F(HttpStreamTest, AnotherThreadWritesWhileServerAndLoopGo) {
  for (int round = 0; round < 50; ++round) {
    auto io = std::make_unique<boost::asio::io_context>(1);
    std::optional<BodyWriter> mine;
    auto server = std::make_unique<HttpServer>(*io, HttpLimits(), [&](HttpExchange exchange) {
      auto [writer, body] = make_body_stream(1000);
      mine.emplace(std::move(writer));
      exchange.respond({.stream = std::move(body)});
    });
    TestClient client(*io, server->listen("127.0.0.1:0").value());
    client.send("GET / HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(run_until(*io, [&] { return mine.has_value(); }));
    std::thread writer([&] {
      while (mine->write("some bytes") != BodyWrite::kGone) std::this_thread::yield();
      mine->finish();
    });
    io->restart();
    io->poll();
    server.reset();
    io.reset();
    writer.join();
  }
}

}  // namespace
}  // namespace fairlead::net
