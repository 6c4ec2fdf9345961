// What requests and answers may hold of a server's memory, and how long one connection may keep the others waiting. Planted and
// caught: a lease that is not released after the answer; a body that is counted as declared; answers that are not counted, or that
// are kept beyond their caller's part; a turn without a bound; no place reserved for Unix sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "base/byte_budget.h"
#include "net/http_server.h"
#include "net/http_stream.h"
#include "net/http_test_client.h"

namespace fairlead::net {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::size_t kBudget = 1 << 20;

class RequestMemoryTest : public ::testing::Test {
 protected:
  void serve(HttpLimits limits = {}, std::size_t budget = kBudget) {
    server_ = std::make_unique<HttpServer>(
        io_, limits, [this](HttpExchange exchange) { handle(std::move(exchange)); }, BodySinks{},
        RequestMemory{.bytes = budget,
                      .holder = [](HttpRequest& head) -> Result<std::string> {
                        if (head.header("Who").empty()) return fail(Errc::kUnauthenticated, "who are you?");
                        return std::string(head.header("Who"));
                      },
                      .keeps_answers_over_unix = keeps_answers_over_unix_,
                      .shared = shared_});
    address_ = *server_->listen("127.0.0.1:0");
  }

  void handle(HttpExchange exchange) {
    ++handled_;
    HttpRequest& request = exchange.request();
    if (const Error* refused = request.refusal()) {
      EXPECT_TRUE(request.body().empty());
      const unsigned status = refused->code == Errc::kUnauthenticated ? 401 : 429;
      return exchange.respond({.status = status, .body = refused->message});
    }
    if (request.target() == "/hold") return held_.push_back(std::move(exchange));
    if (request.target() == "/echo") return exchange.respond({.body = std::string(request.body())});
    if (request.target() == "/stream") {
      auto [writer, body] = make_body_stream(kBudget / 4);
      writers_.push_back(std::move(writer));
      return exchange.respond({.stream = std::move(body)});
    }
    if (request.target() == "/large") return exchange.respond({.body = std::string(kBudget, 'l')});
    exchange.respond({.body = std::to_string(request.body().size())});
  }

  static std::string post(std::string_view target, std::string_view who, std::size_t bytes) {
    return fmt::format("POST {} HTTP/1.1\r\nWho: {}\r\nContent-Length: {}\r\n\r\n{}", target, who, bytes,
                       std::string(bytes, 'b'));
  }

  std::unique_ptr<TestClient> client() { return std::make_unique<TestClient>(io_, address_); }
  // Its own socket takes little.
  std::unique_ptr<TestClient> lazy_client() {
    auto lazy = client();
    const int bytes = 64 << 10;
    ::setsockopt(lazy->fd(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    return lazy;
  }
  bool until_held(std::size_t count) {
    return run_until(io_, [&] { return held_.size() == count; });
  }

  boost::asio::io_context io_{1};
  std::unique_ptr<HttpServer> server_;
  std::string address_;
  std::vector<HttpExchange> held_;
  std::vector<BodyWriter> writers_;
  int handled_ = 0;
  bool keeps_answers_over_unix_ = true;
  std::shared_ptr<ByteBudget> shared_;
};

TEST_F(RequestMemoryTest, WhoFloodsLeavesRoomForOthers) {
  serve();
  std::vector<std::unique_ptr<TestClient>> flood;
  for (std::size_t i = 0; i < 5; ++i) {
    flood.push_back(client());
    flood.back()->send(post("/hold", "flooder", 100 << 10));
    ASSERT_TRUE(until_held(i + 1));
  }
  const auto more = client();
  more->send(post("/", "flooder", 100 << 10));
  EXPECT_THAT(more->receive(), StartsWith("HTTP/1.1 429"));
  const auto other = client();
  other->send(post("/", "other", 200 << 10));
  EXPECT_THAT(other->receive(), HasSubstr("\r\n\r\n204800"));
  more->send(post("/", "flooder", 1 << 10));  // a small one is not counted, on the same connection
  EXPECT_THAT(more->receive(), HasSubstr("\r\n\r\n1024"));
  held_.clear();  // answered 500
  for (const auto& one : flood) EXPECT_THAT(one->receive(), StartsWith("HTTP/1.1 500"));
  more->send(post("/", "flooder", 400 << 10));
  EXPECT_THAT(more->receive(), HasSubstr("\r\n\r\n409600"));
}

TEST_F(RequestMemoryTest, AQueuedRequestCountsUntilItsAnswerIsOut) {
  serve();
  const auto first = client(), second = client();
  first->send(post("/hold", "a", 500 << 10));
  ASSERT_TRUE(until_held(1));
  EXPECT_EQ(held_[0].request().take_body().size(), 500U << 10);  // it lies in a queue now
  second->send(post("/", "a", 500 << 10));
  EXPECT_THAT(second->receive(), StartsWith("HTTP/1.1 429"));
  held_[0].respond({.body = "done"});
  EXPECT_THAT(first->receive(), HasSubstr("done"));
  second->send(post("/", "a", 500 << 10));
  EXPECT_THAT(second->receive(), StartsWith("HTTP/1.1 200"));
}

TEST_F(RequestMemoryTest, WhatIsAnnouncedAndDoesNotComeIsNotCounted) {
  serve();
  const std::string request = post("/", "a", 400'000);
  const std::size_t begun = request.size() - 380'000;
  std::vector<std::unique_ptr<TestClient>> slow;
  for (int i = 0; i < 4; ++i) {
    slow.push_back(client());
    slow.back()->send(request.substr(0, begun));
  }
  const auto other = client();
  other->send(post("/", "b", 400 << 10));
  EXPECT_THAT(other->receive(), StartsWith("HTTP/1.1 200"));
  slow.back()->send(request.substr(begun));
  EXPECT_THAT(slow.back()->receive(), HasSubstr("\r\n\r\n400000"));
}

TEST_F(RequestMemoryTest, AConnectionsNextRequestBeginsWithNothing) {
  serve();
  const auto one = client(), other = client();
  one->send(post("/echo", "a", 400 << 10));
  EXPECT_THAT(one->receive(), StartsWith("HTTP/1.1 200"));
  other->send(post("/", "b", 500 << 10));
  EXPECT_THAT(other->receive(), StartsWith("HTTP/1.1 200"));
  one->send(post("/", "", 400 << 10));
  EXPECT_THAT(one->receive(), StartsWith("HTTP/1.1 401"));
}

TEST_F(RequestMemoryTest, ChunksCountAsTheyCome) {
  serve();
  const auto chunked = client();
  chunked->send("POST / HTTP/1.1\r\nWho: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = fmt::format("{:x}\r\n{}\r\n", 100'000, std::string(100'000, 'c'));
  for (int i = 0; i < 9; ++i) chunked->send(chunk);
  chunked->send("0\r\n\r\n");
  EXPECT_THAT(chunked->receive(), StartsWith("HTTP/1.1 429"));
  chunked->send(post("/", "a", 10));
  EXPECT_THAT(chunked->receive(), StartsWith("HTTP/1.1 200"));
}

TEST_F(RequestMemoryTest, NobodysLargeBodyIsNotKept) {
  serve();
  const auto nobody = client();
  nobody->send(post("/", "", 5 << 20));
  EXPECT_THAT(nobody->receive(), StartsWith("HTTP/1.1 401"));
  nobody->send(post("/", "", 16 << 10));
  EXPECT_THAT(nobody->receive(), StartsWith("HTTP/1.1 200")) << "a small one is the handler's to refuse";
}

TEST_F(RequestMemoryTest, WhoTakesNoAnswersLosesThemAndIsInNobodysWay) {
  serve({.unsent_bytes = 64 << 20}, 8 << 20);
  const std::string unix_path = (std::filesystem::temp_directory_path() / fmt::format("rm-{}", ::getpid())).string();
  ASSERT_TRUE(server_->listen("unix:" + unix_path));
  const auto other = client();
  std::vector<std::unique_ptr<TestClient>> lazy;
  const std::string large = "GET /large HTTP/1.1\r\nWho: flooder\r\n\r\n";
  const auto is_refused = [&] {
    lazy.push_back(lazy_client());
    for (int j = 0; j < 16; ++j) lazy.back()->send(large);
    const int before = handled_;
    EXPECT_TRUE(run_until(io_, [&] { return handled_ >= before + 16; }));
    const auto probe = client();
    probe->send(large);
    return probe->receive().starts_with("HTTP/1.1 429");
  };
  for (int i = 0; i < 50 && !is_refused(); ++i) {  // until the sockets take no more
  }
  EXPECT_LE(server_->held_bytes(), std::size_t{4} << 20) << "half of it";
  const auto again = client();
  again->send(large);
  EXPECT_THAT(again->receive(), HasSubstr("the request was carried out, and its answer of 1048576 bytes is not kept"));
  other->send("GET /large HTTP/1.1\r\nWho: other\r\n\r\n");
  EXPECT_THAT(other->receive().substr(0, 20), StartsWith("HTTP/1.1 200")) << "another's finds room";
  again->send(post("/", "flooder", 10));
  EXPECT_THAT(again->receive(), StartsWith("HTTP/1.1 200")) << "small ones are not counted";
  TestClient operators(io_, "unix:" + unix_path);
  operators.send(large);
  EXPECT_THAT(operators.receive().substr(0, 20), StartsWith("HTTP/1.1 200")) << "the operator's";
  lazy.clear();
  ASSERT_TRUE(run_until(io_, [&] { return server_->held_bytes() == 0; }));
  again->send(large);
  EXPECT_THAT(again->receive().substr(0, 20), StartsWith("HTTP/1.1 200"));
}

// Who asks for what takes long, on every connection that there may be, keeps nobody out.
TEST_F(RequestMemoryTest, AStreamCountsAsWhatMayWaitInIt) {
  serve();
  std::vector<std::unique_ptr<TestClient>> clients;
  std::string refused;
  while (clients.size() < 10 && refused.empty()) {
    clients.push_back(client());
    clients.back()->send(post("/stream", "flooder", 0));
    const std::string head = clients.back()->receive_at_least(30);
    if (head.find(" 200 ") == std::string::npos) refused = head;
  }
  EXPECT_THAT(refused, HasSubstr(" 429 "));
  EXPECT_LE(server_->held_bytes(), kBudget);
  EXPECT_GE(server_->held_bytes(), kBudget / 4);
  EXPECT_TRUE(writers_.back().is_gone()) << "who would write it is told";
  writers_.clear();
  EXPECT_TRUE(run_until(io_, [&] { return server_->held_bytes() == 0; }));
}

TEST_F(RequestMemoryTest, WhoHasTheMostConnectionsThatWaitLosesTheNewest) {
  serve({.connections = 6});
  std::vector<std::unique_ptr<TestClient>> flood, other;
  for (std::size_t i = 0; i < 6; ++i) {
    flood.push_back(client());
    flood.back()->send("GET /hold HTTP/1.1\r\nWho: flooder\r\n\r\n");
    ASSERT_TRUE(until_held(i + 1));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    other.push_back(client());
    other.back()->send("GET /hold HTTP/1.1\r\nWho: other\r\n\r\n");
    ASSERT_TRUE(until_held(7 + i)) << "in the place of the flooder's newest";
  }
  for (std::size_t i = 3; i < 6; ++i) EXPECT_EQ(flood[i]->receive_until_closed(), "");
  held_.clear();  // answered 500, those that are left
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(flood[i]->receive(), StartsWith("HTTP/1.1 500"));
    EXPECT_THAT(other[i]->receive(), StartsWith("HTTP/1.1 500"));
  }
}

// A function's door to its tenant's objects is a Unix socket too, and no operator comes through it.
TEST_F(RequestMemoryTest, OverAUnixSocketAnswersAreKeptOnlyWhereItIsTheOperators) {
  keeps_answers_over_unix_ = false;
  serve({}, kBudget);
  const std::string unix_path = (std::filesystem::temp_directory_path() / fmt::format("rm3-{}", ::getpid())).string();
  ASSERT_TRUE(server_->listen("unix:" + unix_path));
  TestClient function(io_, "unix:" + unix_path);
  function.send("GET /large HTTP/1.1\r\nWho: f\r\n\r\n");  // as much as the whole budget
  EXPECT_THAT(function.receive(), StartsWith("HTTP/1.1 429"));
}

TEST_F(RequestMemoryTest, ServersThatShareABudgetCountTogether) {
  shared_ = std::make_shared<ByteBudget>(kBudget);
  serve();
  HttpServer other(
      io_, {}, [](HttpExchange) {}, BodySinks{},
      RequestMemory{.bytes = kBudget, .holder = [](HttpRequest&) { return std::string("a"); }, .shared = shared_});
  const auto first = client();
  first->send(post("/hold", "a", 500 << 10));
  ASSERT_TRUE(until_held(1));
  EXPECT_EQ(other.held_bytes(), server_->held_bytes());
  EXPECT_GT(other.held_bytes(), 400U << 10);
}

TEST_F(RequestMemoryTest, NobodysAnswersCountTogether) {
  serve({.unsent_bytes = 64 << 20}, 4 << 20);
  std::vector<std::unique_ptr<TestClient>> lazy;
  std::string answer;
  for (int i = 0; i < 50 && !answer.starts_with("HTTP/1.1 429"); ++i) {
    lazy.push_back(lazy_client());
    for (int j = 0; j < 16; ++j) lazy.back()->send("GET /large HTTP/1.1\r\n\r\n");
    const auto probe = client();
    probe->send("GET /large HTTP/1.1\r\n\r\n");
    answer = probe->receive();
  }
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 429"));
  EXPECT_LE(server_->held_bytes(), std::size_t{2} << 20);
}

// What a client does not read stops what it asks for, and nobody else.
TEST_F(RequestMemoryTest, AConnectionWhoseAnswersAreNotTakenAsksForNoMore) {
  serve({.pipelined_requests = 64, .unsent_bytes = 2 << 20}, 256 << 20);
  const auto lazy = lazy_client();
  std::string many;
  for (int i = 0; i < 64; ++i) many += "GET /large HTTP/1.1\r\n\r\n";
  lazy->send(many);
  ASSERT_TRUE(run_until(io_, [&] { return handled_ >= 3; }));
  const auto other = client();
  for (int i = 0; i < 5; ++i) {
    other->send(post("/", "other", 10));
    EXPECT_THAT(other->receive(), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_LT(handled_, 64);
  for (int i = 0; i < 64; ++i) EXPECT_THAT(lazy->receive().substr(0, 20), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(handled_, 64 + 5);
}

// A pipeline of many requests and one request beside it: the one waits for a turn of the pipeline, not for all of it.
TEST_F(RequestMemoryTest, APipelineHasTurns) {
  serve({.requests_per_turn = 4});
  const auto flood = client(), other = client();
  flood->send("GET / HTTP/1.1\r\n\r\n");  // accepted, and its read is pending
  EXPECT_THAT(flood->receive(), StartsWith("HTTP/1.1 200"));
  other->send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(other->receive(), StartsWith("HTTP/1.1 200"));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "GET / HTTP/1.1\r\n\r\n";
  handled_ = 0;
  flood->send(many);
  while (handled_ == 0) {
    io_.restart();
    io_.run_one_for(std::chrono::milliseconds(5));
    EXPECT_LE(handled_, 4) << "a turn";
  }
  for (int i = 0; i < 1000; ++i) EXPECT_THAT(flood->receive(), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(handled_, 1000);
}

TEST_F(RequestMemoryTest, APipelineOfDearRequestsHasOneATurn) {
  serve({.turn = Duration(0)});  // any is dear
  const auto flood = client();
  flood->send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(flood->receive(), StartsWith("HTTP/1.1 200"));
  std::string many;
  for (int i = 0; i < 10; ++i) many += "GET / HTTP/1.1\r\n\r\n";
  handled_ = 0;
  flood->send(many);
  for (int before = 0; handled_ < 10; before = handled_) {
    io_.restart();
    io_.run_one_for(std::chrono::milliseconds(5));
    EXPECT_LE(handled_, before + 1);
  }
}

// Requests that wait for their turn when the client ends its side are answered all the same.
TEST_F(RequestMemoryTest, TheEndOfInputDoesNotOvertakeWhatWaits) {
  serve({.requests_per_turn = 2});
  const auto one = client();
  std::string many;
  for (int i = 0; i < 50; ++i) many += "GET / HTTP/1.1\r\n\r\n";
  one->send(many);
  one->end_sending();
  for (int i = 0; i < 50; ++i) EXPECT_THAT(one->receive(), StartsWith("HTTP/1.1 200")) << i;
  EXPECT_EQ(one->receive_until_closed(), "");
  EXPECT_EQ(handled_, 50);
}

TEST_F(RequestMemoryTest, TheEndOfInputDoesNotOvertakeWhatWaitsForAnAnswerToGo) {
  serve({.unsent_bytes = 1 << 10}, 8 << 20);
  const auto one = client();
  one->send("GET /large HTTP/1.1\r\n\r\nGET /large HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET /half HT");
  one->end_sending();
  for (int i = 0; i < 3; ++i) EXPECT_THAT(one->receive().substr(0, 20), StartsWith("HTTP/1.1 200")) << i;
  EXPECT_EQ(one->receive_until_closed(), "") << "what was cut off is no request";
  EXPECT_EQ(handled_, 3);
}

TEST_F(RequestMemoryTest, AHeadHasSoManyFields) {
  serve();
  const auto one = client();
  std::string head = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 256; ++i) head += "a:\r\n";
  one->send(head + "\r\n");
  EXPECT_THAT(one->receive(), StartsWith("HTTP/1.1 200"));
  one->send(head + "b:\r\n\r\n");
  EXPECT_THAT(one->receive(), StartsWith("HTTP/1.1 431"));
}

// A turn that goes on from the event loop is one, however much arrives meanwhile.
TEST_F(RequestMemoryTest, TurnsDoNotMultiply) {
  serve({.requests_per_turn = 2});
  const auto flood = client();
  flood->send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(flood->receive(), StartsWith("HTTP/1.1 200"));
  std::string few;
  for (int i = 0; i < 20; ++i) few += "GET / HTTP/1.1\r\n\r\n";
  handled_ = 0;
  int most = 0;
  for (int round = 0; round < 20; ++round) {
    flood->send(few);
    const int before = handled_;
    io_.restart();
    io_.poll_one();  // a read, or a turn
    io_.poll_one();
    most = std::max(most, handled_ - before);
  }
  EXPECT_LE(most, 4) << "two handlers";
  for (int i = 0; i < 400; ++i) EXPECT_THAT(flood->receive(), StartsWith("HTTP/1.1 200"));
}

// Over a Unix socket, which takes three turns at once.
class TurnsTest : public RequestMemoryTest {
 protected:
  static constexpr std::size_t kTurn = 64 << 10, kHead = 1 << 10;

  void SetUp() override {
    serve({}, 8 << 20);
    path_ = (std::filesystem::temp_directory_path() / fmt::format("turns-{}", ::getpid())).string();
    ASSERT_TRUE(server_->listen("unix:" + path_));
  }
  std::unique_ptr<TestClient> known_client() {
    auto one = std::make_unique<TestClient>(io_, "unix:" + path_);
    one->send("GET / HTTP/1.1\r\n\r\n");  // accepted, and its read is pending
    EXPECT_THAT(one->receive(), StartsWith("HTTP/1.1 200"));
    return one;
  }
  void turn() {
    io_.restart();
    io_.run_one_for(std::chrono::milliseconds(5));
  }
  // What has arrived.
  static std::string taken(const TestClient& client) {
    std::string bytes;
    char buffer[64 << 10];
    ssize_t count = 0;
    while ((count = ::recv(client.fd(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0) {
      bytes.append(buffer, static_cast<std::size_t>(count));
    }
    return bytes;
  }

  std::string path_;
};

// Who reads as fast as the server writes has one turn of the loop after the other, not all of the loop.
TEST_F(TurnsTest, ALargeAnswerHasThem) {
  const auto one = known_client();
  one->send("GET /large HTTP/1.1\r\n\r\n");
  std::string all;
  while (all.size() < kBudget || all.size() < all.find("\r\n\r\n") + 4 + kBudget) {
    turn();
    const std::string part = taken(*one);
    ASSERT_LE(part.size(), kTurn + kHead);
    all += part;
  }
  EXPECT_TRUE(all.ends_with(std::string(kBudget, 'l'))) << "whole, though its pages went as they were sent";
}

TEST_F(TurnsTest, AnotherIsServedBetweenThem) {
  const auto flood = known_client(), other = known_client();
  handled_ = 0;
  flood->send("GET /large HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until(io_, [&] { return handled_ == 1; }));
  other->send("GET / HTTP/1.1\r\n\r\n");
  std::size_t beside = 0;
  while (handled_ == 1 && beside < kBudget) {
    turn();
    beside += taken(*flood).size();
  }
  EXPECT_LE(beside, 3 * kTurn) << "before a call that came when the large answer began";
}

TEST_F(RequestMemoryTest, TheOperatorsSocketHasPlacesOfItsOwn) {
  serve({.connections = 2});
  const std::string unix_path = (std::filesystem::temp_directory_path() / fmt::format("rm2-{}", ::getpid())).string();
  ASSERT_TRUE(server_->listen("unix:" + unix_path));
  const auto first = client(), second = client();
  first->send(post("/hold", "a", 1));
  second->send(post("/hold", "b", 1));
  ASSERT_TRUE(until_held(2));
  const auto third = client();
  EXPECT_THAT(third->receive_until_closed(), StartsWith("HTTP/1.1 503"));
  TestClient operators(io_, "unix:" + unix_path);
  operators.send(post("/", "operator", 1));
  EXPECT_THAT(operators.receive(), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace fairlead::net
