// Callbacks: how often they are tried, what is kept, and where they do not go.
#include "edge/openfaas/callbacks.h"

#include <gtest/gtest.h>

#include <vector>

#include "edge/openfaas/callback_sender.h"
#include "net/http_server.h"

namespace fairlead::openfaas {
namespace {

using namespace std::chrono_literals;

Callback callback(std::size_t bytes = 1) {
  return {.url = {.host = {"h", 80}}, .request = {.method = "POST", .target = "/", .body = std::string(bytes, 'x')}};
}

class CallbacksTest : public ::testing::Test {
 protected:
  void run_all() {
    io_.restart();
    while (io_.run_one_for(2min) > 0) {
    }
  }

  boost::asio::io_context io_;
  std::vector<std::function<void(Status)>> tries_;  // that are under way
  Callbacks callbacks_{
      io_, [this](const Callback&, std::function<void(Status)> done) { tries_.push_back(std::move(done)); }, 1ms};
};

TEST_F(CallbacksTest, AnAnswerIsTheEnd) {
  callbacks_.post(callback());
  ASSERT_EQ(1u, tries_.size());
  tries_[0]({});
  run_all();
  EXPECT_EQ(1u, tries_.size());
  EXPECT_EQ(1u, callbacks_.counters().delivered);
  EXPECT_EQ(0u, callbacks_.counters().held);
  EXPECT_EQ(0u, callbacks_.counters().bytes);
}

TEST_F(CallbacksTest, ThreeTriesAndNoMore) {
  callbacks_.post(callback());
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(i + 1, tries_.size());
    tries_[i](fail(Errc::kUnavailable, "refused"));
    run_all();
  }
  EXPECT_EQ(3u, tries_.size());
  EXPECT_EQ(1u, callbacks_.counters().dropped);
  EXPECT_EQ(0u, callbacks_.counters().held);
}

TEST_F(CallbacksTest, OneThatFailsIsInNobodysWay) {
  callbacks_.post(callback());
  tries_[0](fail(Errc::kUnavailable, "refused"));
  callbacks_.post(callback());
  EXPECT_EQ(2u, tries_.size()) << "it waits beside the others";
}

TEST_F(CallbacksTest, SoManyAtOnceAndSoManyInAll) {
  for (std::size_t i = 0; i < Callbacks::kMostCallbacks + 5; ++i) callbacks_.post(callback());
  EXPECT_EQ(Callbacks::kMostAtOnce, tries_.size());
  EXPECT_EQ(Callbacks::kMostCallbacks, callbacks_.counters().held);
  EXPECT_EQ(5u, callbacks_.counters().dropped);
  tries_[0]({});
  EXPECT_EQ(Callbacks::kMostAtOnce + 1, tries_.size());
}

TEST_F(CallbacksTest, SoManyBytesInAll) {
  callbacks_.post(callback(Callbacks::kMostBytes));  // with its path: one too many
  EXPECT_EQ(1u, callbacks_.counters().dropped);
  callbacks_.post(callback(Callbacks::kMostBytes / 2));
  callbacks_.post(callback(Callbacks::kMostBytes / 2));
  EXPECT_EQ(1u, callbacks_.counters().held);
  EXPECT_EQ(2u, callbacks_.counters().dropped);
}

TEST_F(CallbacksTest, WhoAnswersLateFindsNobody) {
  std::function<void(Status)> late;
  {
    Callbacks gone(
        io_, [&](const Callback&, std::function<void(Status)> done) { late = std::move(done); }, 1ms);
    gone.post(callback());
  }
  late({});
}

// ---- over sockets

class SenderTest : public ::testing::Test {
 protected:
  SenderTest() {
    const auto address = server_.listen("127.0.0.1:0");
    port_ = static_cast<std::uint16_t>(std::stoi(address->substr(address->rfind(':') + 1)));
  }

  Status send(const std::string& host, const RegistryRules& rules) {
    const Callback sent{
        .url = {.host = {host, port_}, .target = "/x?y"},
        .request = {.method = "POST", .target = "/x?y", .headers = {{"X-Call-Id", "7"}}, .body = "body"}};
    std::optional<Status> said;
    callback_sender(io_, rules)(sent, [&](const Status& status) { said = status; });
    while (!said && io_.run_one_for(2min) > 0) {
    }
    return said.value_or(fail(Errc::kInternal, "nothing was said"));
  }

  boost::asio::io_context io_;
  std::string seen_;
  unsigned status_ = 200;
  net::HttpServer server_{io_, {}, [this](net::HttpExchange exchange) {
                            net::HttpRequest& request = exchange.request();
                            seen_ = fmt::format("{} {} {} {}", request.method(), request.target(),
                                                request.header("X-Call-Id"), request.body());
                            exchange.respond({.status = status_, .headers = {{"Location", "/elsewhere"}}});
                          }};
  std::uint16_t port_ = 0;
};

TEST_F(SenderTest, ItIsPostedAndAnyAnswerWillDo) {
  const RegistryRules rules = RegistryRules::parse({fmt::format("localhost:{}", port_)}).value();
  for (const unsigned status : {200u, 302u, 500u}) {
    status_ = status;
    EXPECT_TRUE(send("localhost", rules));
    EXPECT_EQ("POST /x?y 7 body", seen_);
  }
}

// A name that is allowed as a name, and leads here.
TEST_F(SenderTest, AnAddressThatIsNotPublicIsNotConnectedTo) {
  const Status sent = send("localhost", RegistryRules::everything_public());
  ASSERT_FALSE(sent);
  EXPECT_EQ(Errc::kForbidden, sent.error().code);
  EXPECT_EQ("", seen_);
}

TEST_F(SenderTest, NobodyThereIsAFailure) {
  server_.close();
  const RegistryRules rules = RegistryRules::parse({fmt::format("127.0.0.1:{}", port_)}).value();
  EXPECT_FALSE(send("127.0.0.1", rules));
}

}  // namespace
}  // namespace fairlead::openfaas
