// Callbacks: how often they are tried, what is kept, and where they do not go.
#include "edge/openfaas/callbacks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <vector>

#include "edge/openfaas/callback_sender.h"
#include "net/http_server.h"

namespace fairlead::openfaas {
namespace {

using namespace std::chrono_literals;

Callback callback(std::size_t bytes = 1, const std::string& tenant = "t") {
  return {.url = {.host = {"h", 80}},
          .request = {.method = "POST", .target = "/", .body = std::string(bytes, 'x')},
          .tenant = tenant};
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
  for (std::size_t i = 0; i < 2 * Callbacks::kMostCallbacks; ++i) {
    callbacks_.post(callback(1, std::to_string(i % 100)));
  }
  EXPECT_EQ(Callbacks::kMostAtOnce - 1, tries_.size()) << "the last place is what is left free";
  EXPECT_LE(callbacks_.counters().held, Callbacks::kMostCallbacks);
  EXPECT_GT(callbacks_.counters().held, Callbacks::kMostCallbacks * 9 / 10);
  EXPECT_EQ(2 * Callbacks::kMostCallbacks - callbacks_.counters().held, callbacks_.counters().dropped);
  tries_[0]({});
  EXPECT_EQ(Callbacks::kMostAtOnce, tries_.size());
}

TEST_F(CallbacksTest, SoManyBytesInAll) {
  callbacks_.post(callback(Callbacks::kMostBytes / 2));  // with its path: one too many for one tenant
  EXPECT_EQ(1u, callbacks_.counters().dropped);
  callbacks_.post(callback(Callbacks::kMostBytes / 4));
  callbacks_.post(callback(Callbacks::kMostBytes / 4));
  EXPECT_EQ(1u, callbacks_.counters().held);
  EXPECT_EQ(2u, callbacks_.counters().dropped);
}

// One whose hooks never answer has half of the places under way, and of those that wait; another's callback is tried at once.
TEST_F(CallbacksTest, WhoseHooksHangKeepsNobodyElseWaiting) {
  for (std::size_t i = 0; i < Callbacks::kMostCallbacks; ++i) callbacks_.post(callback(1, "flooder"));
  EXPECT_EQ(Callbacks::kMostAtOnce / 2, tries_.size());
  EXPECT_EQ(Callbacks::kMostCallbacks / 2, callbacks_.counters().held);
  callbacks_.post(callback(1, "victim"));
  EXPECT_EQ(Callbacks::kMostAtOnce / 2 + 1, tries_.size());
  tries_.back()({});
  EXPECT_EQ(1u, callbacks_.counters().delivered);
}

TEST_F(CallbacksTest, TenantsTakeTurns) {
  std::vector<std::string> order;
  std::vector<std::function<void(Status)>> tries;
  Callbacks callbacks(
      io_,
      [&](const Callback& one, std::function<void(Status)> done) {
        order.push_back(one.tenant);
        tries.push_back(std::move(done));
      },
      1ms);
  for (int i = 0; i < 100; ++i) callbacks.post(callback(1, "a"));
  for (int i = 0; i < 100; ++i) callbacks.post(callback(1, "b"));
  const std::size_t before = order.size();
  for (std::size_t i = 0; i < 20; ++i) tries[i]({});
  const auto of_b = std::count(order.begin() + static_cast<std::ptrdiff_t>(before), order.end(), "b");
  EXPECT_GE(of_b, 5) << "of " << order.size() - before;
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

// The names of a tenant whose name server says nothing are in nobody's way.
TEST_F(SenderTest, ANameThatHangsDelaysNoOther) {
  const auto end = std::make_shared<std::promise<void>>();
  const RegistryRules rules =
      RegistryRules::parse({fmt::format("hangs:{}", port_), fmt::format("localhost:{}", port_)}).value();
  const SendCallback send = callback_sender(
      io_, rules, [ended = end->get_future().share(), end](const std::string& host, const std::string& port) {
        if (host == "hangs") ended.wait_for(10s);
        return net::look_up_host("127.0.0.1", port);
      });
  const Callback slow{.url = {.host = {"hangs", port_}, .target = "/"}, .request = {.method = "POST", .target = "/"}};
  const Callback other{.url = {.host = {"localhost", port_}, .target = "/"},
                       .request = {.method = "POST", .target = "/"}};
  std::string order;
  send(slow, [&](const Status&) { order += "slow "; });
  send(other, [&](const Status& status) { order += status ? "other " : status.error().message; });
  while (order.empty() && io_.run_one_for(2min) > 0) {
  }
  EXPECT_EQ(order, "other ");
  end->set_value();
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
