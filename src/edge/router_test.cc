#include "edge/router.h"

#include <stdexcept>

#include "base/log.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() { spdlog::set_level(spdlog::level::off); }
  ~RouterTest() override { spdlog::set_level(spdlog::level::info); }

  std::shared_ptr<FakeExchange> send(std::string method, std::string target) {
    auto exchange = std::make_shared<FakeExchange>();
    exchange->method_text = std::move(method);
    exchange->target_text = std::move(target);
    last_.clear();
    router_.dispatch(net::HttpExchange(exchange));
    return exchange;
  }

  // What was noted of the request: by the handler that got it, or by the edge that refused it.
  std::string noted(std::string method, std::string target) {
    send(std::move(method), std::move(target));
    return last_;
  }

  // A handler that notes its name and the parameters.
  RouteHandler note(std::string name) {
    return [this, name](RouteCall call) {
      last_ = name;
      for (const auto& [key, value] : call.parameters) last_ += " " + key + "=" + value;
      call.exchange.respond({});
    };
  }

  EdgeErrors note_errors(const std::string& who) {
    return {.error =
                [this, who](net::HttpExchange exchange, const Error& error) {
                  last_ = who + ": " + error.message;
                  exchange.respond({.status = 400});
                },
            .unknown =
                [this, who](net::HttpExchange exchange, const std::string& allowed) {
                  last_ = who + ": [" + allowed + "]";
                  exchange.respond({.status = allowed.empty() ? 404u : 405u});
                }};
  }

  Edge edge(const std::string& name, std::vector<std::string> prefixes) {
    return {.name = name, .prefixes = std::move(prefixes), .errors = note_errors(name)};
  }

  // An edge that has the routes, named by their patterns.
  Status add(const std::string& name, std::vector<std::string> prefixes,
             const std::vector<std::pair<const char*, const char*>>& routes) {
    Edge added = edge(name, std::move(prefixes));
    for (const auto& [method, pattern] : routes) added.routes.add(method, pattern, note(pattern));
    return router_.add(std::move(added));
  }

  Router router_{note_errors("nobody")};
  std::string last_;
};

TEST_F(RouterTest, ParametersStandAnywhereAndHaveNames) {
  ASSERT_TRUE(
      add("v2", {"/v2"}, {{"GET", "/v2/models/{model}"}, {"POST", "/v2/models/{model}/versions/{version}/infer"}}));
  EXPECT_EQ("/v2/models/{model} model=m", noted("GET", "/v2/models/m/"));
  EXPECT_EQ("/v2/models/{model} model=m", noted("HEAD", "/v2/models/m"));
  EXPECT_EQ("/v2/models/{model}/versions/{version}/infer model=m version=7",
            noted("POST", "/v2/models/m/versions/7/infer?x=1"));
  EXPECT_EQ("v2: []", noted("POST", "/v2/models/m/versions/infer"));
}

TEST_F(RouterTest, SegmentsAreDecodedOnce) {
  ASSERT_TRUE(add("a", {"/a"}, {{"GET", "/a/{x}"}}));
  EXPECT_EQ("/a/{x} x=x/y:z", noted("GET", "/%61/x%2Fy%3Az?q=1"));
  EXPECT_EQ("/a/{x} x=%41", noted("GET", "/a/%2541"));
  EXPECT_EQ("nobody: []", noted("GET", "/a%2Fx")) << "an escaped slash ends no segment";
}

TEST_F(RouterTest, ARestTakesAllThatFollowsAndAtLeastOneSegment) {
  ASSERT_TRUE(add("a", {"/a"}, {{"GET", "/a"}, {"GET", "/a/{key*}"}}));
  EXPECT_EQ("/a/{key*} key=b/c/d/e", noted("GET", "/a/b/c%2Fd/e"));
  EXPECT_EQ("/a", noted("GET", "/a"));
  EXPECT_EQ("nobody: []", noted("GET", "/b/c"));
}

TEST_F(RouterTest, TheNarrowestRouteIsTakenWhateverTheOrder) {
  ASSERT_TRUE(add("a", {"/a"}, {{"GET", "/a/{rest*}"}, {"GET", "/a/{x}"}, {"GET", "/a/b"}, {"GET", "/a/{x}/c"}}));
  EXPECT_EQ("/a/b", noted("GET", "/a/b"));
  EXPECT_EQ("/a/{x} x=d", noted("GET", "/a/d"));
  EXPECT_EQ("/a/{x}/c x=b", noted("GET", "/a/b/c"));
  EXPECT_EQ("/a/{rest*} rest=b/d", noted("GET", "/a/b/d"));
}

TEST_F(RouterTest, ARouteOfAnotherMethodIsInNobodysWay) {
  ASSERT_TRUE(add("a", {"/a"}, {{"GET", "/a/{x}"}, {"DELETE", "/a/{y}"}, {"POST", "/a/b"}}));
  EXPECT_EQ("/a/{x} x=b", noted("GET", "/a/b"));
  EXPECT_EQ("a: [GET, DELETE]", noted("PATCH", "/a/x"));
  EXPECT_EQ("a: [GET, DELETE, POST]", noted("PATCH", "/a/b")) << "in the order of addition, all that match";
}

TEST_F(RouterTest, TheOwnerOfThePathSaysThatThereIsNothing) {
  ASSERT_TRUE(add("native", {"/v1"}, {{"GET", "/v1/objects"}}));
  ASSERT_TRUE(add("chat", {"/v1/chat"}, {{"POST", "/v1/chat/completions"}}));
  EXPECT_EQ("native: []", noted("GET", "/v1/nothing"));
  EXPECT_EQ("native: [GET]", noted("PUT", "/v1/objects"));
  EXPECT_EQ("chat: []", noted("GET", "/v1/chat/nothing")) << "the longer prefix";
  EXPECT_EQ("chat: [POST]", noted("GET", "/v1/chat/completions"));
  EXPECT_EQ("nobody: []", noted("GET", "/v11"));
  EXPECT_EQ("nobody: []", noted("GET", "/"));
}

TEST_F(RouterTest, ATargetThatCannotBeReadIsItsOwnersToRefuse) {
  ASSERT_TRUE(add("chat", {"/v1/chat"}, {}));
  EXPECT_THAT(noted("GET", "/v1/chat/%zz"), HasSubstr("chat: request target: '%zz'"));
  EXPECT_THAT(noted("GET", "/v1/%zz"), HasSubstr("nobody: request target"));
  EXPECT_THAT(noted("OPTIONS", "*"), HasSubstr("nobody: request target: '*' does not begin"));
}

TEST_F(RouterTest, RoutesOfWhichNeitherIsNarrowerAreRefused) {
  ASSERT_TRUE(add("a", {"/a"}, {{"GET", "/a/{x}/c"}}));
  const Status same = add("b", {"/a/b"}, {{"GET", "/a/b/{y}"}});
  ASSERT_FALSE(same);
  EXPECT_EQ(Errc::kConflict, same.error().code);
  EXPECT_THAT(same.error().message, HasSubstr("GET '/a/{x}/c' is in the way of '/a/b/{y}'"));
  EXPECT_EQ("a: []", noted("GET", "/a/b/d")) << "nothing of an edge that was refused is there, nor its prefix";
  EXPECT_FALSE(add("c", {"/a/c"}, {{"GET", "/a/c/{y}"}, {"GET", "/a/c/{z}"}})) << "two of the same paths";
}

TEST_F(RouterTest, AnEdgeStaysBelowItsPrefixesAndSharesNone) {
  EXPECT_FALSE(add("a", {"/a"}, {{"GET", "/b"}}));
  EXPECT_FALSE(add("a", {"/a"}, {{"GET", "/{x}/b"}}));
  ASSERT_TRUE(add("a", {"/a"}, {{"GET", "/a"}}));
  const Status taken = add("b", {"/a"}, {});
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("'/a' has an owner already"));
}

TEST_F(RouterTest, PatternsThatAreNoneAreRefused) {
  for (const char* pattern : {"", "a", "/a/{}", "/a/{*}", "/a/x{y}", "/a/{x", "/a/{x*}/b", "/a/{x}/{x}", "/a/{x}{y}"}) {
    EXPECT_FALSE(RoutePattern::parse(pattern)) << pattern;
  }
}

TEST_F(RouterTest, AnExceptionLeavesTheExchangeToTheServers500) {
  Edge throwing = edge("a", {"/throw"});
  throwing.routes.add("GET", "/throw", [](RouteCall) { throw std::runtime_error("third party"); });
  ASSERT_TRUE(router_.add(std::move(throwing)));
  const auto exchange = send("GET", "/throw");
  EXPECT_FALSE(exchange->response);
  EXPECT_TRUE(exchange->abandoned);
}

}  // namespace
}  // namespace fairlead
