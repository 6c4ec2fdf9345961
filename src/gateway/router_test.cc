#include "gateway/router.h"

#include <stdexcept>

#include "base/log.h"
#include "gateway/gateway_fixture.h"

namespace fairlead {
namespace {

class RouterTest : public ::testing::Test {
 protected:
  std::shared_ptr<FakeExchange> send(std::string method, std::string target) {
    auto exchange = std::make_shared<FakeExchange>();
    exchange->method_text = std::move(method);
    exchange->target_text = std::move(target);
    router_.dispatch(net::HttpExchange(exchange));
    return exchange;
  }

  RouterTest() { spdlog::set_level(spdlog::level::off); }
  ~RouterTest() override { spdlog::set_level(spdlog::level::info); }

  // A handler that notes its name and the parameter.
  Router::Handler note(std::string name) {
    return [this, name](RouteCall call) {
      last_ = name + ":" + call.parameter;
      call.exchange.respond({});
    };
  }

  Router router_;
  std::string last_;
};

TEST_F(RouterTest, FindsByMethodPathAndParameter) {
  router_.add("GET", "/a", note("list"));
  router_.add("GET", "/a/{}", note("get"));
  router_.add("PUT", "/a/{}/b", note("put"));
  send("GET", "/a/");
  EXPECT_EQ("list:", last_);
  send("GET", "/a/x%2Fy%3Az?q=1");
  EXPECT_EQ("get:x/y:z", last_);
  send("PUT", "/a/n/b");
  EXPECT_EQ("put:n", last_);
  send("HEAD", "/a/h");
  EXPECT_EQ("get:h", last_);
}

TEST_F(RouterTest, ARestTakesAllThatFollowsAndAtLeastOneSegment) {
  router_.add("GET", "/a", note("list"));
  router_.add("GET", "/a/{*}", note("get"));
  send("GET", "/a/b/c%2Fd/e");
  EXPECT_EQ("get:b/c/d/e", last_);
  send("GET", "/a");
  EXPECT_EQ("list:", last_);
  EXPECT_EQ(404u, send("GET", "/b/c")->response->status);
}

TEST_F(RouterTest, AllowListsEveryMethodOfThePath) {
  router_.add("GET", "/a/{}", note("get"));
  router_.add("DELETE", "/a/{}", note("delete"));
  const auto exchange = send("PATCH", "/a/x");
  EXPECT_EQ(405u, exchange->response->status);
  EXPECT_EQ("GET, DELETE", exchange->response_header("Allow"));
}

TEST_F(RouterTest, AnExceptionLeavesTheExchangeToTheServers500) {
  router_.add("GET", "/throw", [](RouteCall) { throw std::runtime_error("third party"); });
  const auto exchange = send("GET", "/throw");
  EXPECT_FALSE(exchange->response);
  EXPECT_TRUE(exchange->abandoned);
}

}  // namespace
}  // namespace fairlead
