#include "decide/cluster/cluster_view.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Instant kBegin{};

class ClusterViewTest : public testing::Test {
 protected:
  ClusterViewTest() {
    for (const char* name : {"b", "c"}) EXPECT_TRUE(view_.meet(kBegin, name));
    all_speak(kBegin);
    for (int i = 0; home() == view_.self(); ++i)
      function_ = function_key("default", std::to_string(i));  // at home on another
  }

  // On a node where nobody waits.
  double factor(std::uint64_t tenant) {
    const TenantClocks& clocks = view_.tenant_clocks();
    return clocks.factor(tenant, clocks.middle_s({}));
  }
  NodeWord word(const std::string& name, double backlog_s = 0) {
    return {.name = name, .incarnation = 1, .number = ++number_, .tokens = 2, .backlog_s = backlog_s, .warm = nullptr};
  }
  void all_speak(Instant now) {
    view_.say(now, word("a"));
    for (const char* name : {"b", "c"}) EXPECT_TRUE(view_.hear(now, word(name)));
    view_.advance(now);
  }
  // As the node's periods go, with the words of those that speak.
  void pass(Duration time, const std::vector<std::string>& speakers) {
    for (const Instant end = now_ + time; now_ < end;) {
      now_ += 200ms;
      view_.say(now_, word("a"));
      for (const std::string& name : speakers) EXPECT_TRUE(view_.hear(now_, word(name)));
      view_.advance(now_);
    }
  }
  NodeId id(const char* name) { return *view_.find(name); }
  NodeId home() { return view_.choose(function_)->node; }

  ClusterView view_{"a", {}, kBegin};
  std::uint64_t number_ = 0;
  std::uint64_t function_ = function_key("default", "f");
  Instant now_ = kBegin;
};

TEST_F(ClusterViewTest, AllGatewaysFindTheSameHome) {
  ClusterView other("c", {}, kBegin);
  for (const char* name : {"a", "b"}) ASSERT_TRUE(other.meet(kBegin, name));
  other.say(kBegin, word("c"));
  for (const char* name : {"b", "a"}) ASSERT_TRUE(other.hear(kBegin, word(name)));
  other.advance(kBegin);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t function = function_key("default", std::to_string(i));
    EXPECT_EQ(view_.name(view_.choose(function)->node), other.name(other.choose(function)->node));
  }
}

TEST_F(ClusterViewTest, AHomeThatIsSilentGetsNoCallsAndThenIsDead) {
  const NodeId first = home();
  std::vector<std::string> rest;
  for (const char* name : {"b", "c"}) {
    if (id(name) != first) rest.emplace_back(name);
  }
  pass(400ms, rest);
  EXPECT_EQ(view_.state(first), MemberState::kAlive);
  pass(400ms, rest);
  EXPECT_EQ(view_.state(first), MemberState::kSuspect);
  EXPECT_NE(home(), first);
  pass(3s, rest);
  EXPECT_EQ(view_.state(first), MemberState::kDead);
  NodeWord again = word(view_.name(first));
  EXPECT_EQ(*view_.hear(now_, again), Heard::kThoughtDead);
  again.incarnation = 2;
  EXPECT_EQ(*view_.hear(now_, again), Heard::kNews);
  view_.advance(now_);
  EXPECT_EQ(home(), first);
}

TEST_F(ClusterViewTest, WhoWasStoppedItselfThinksNobodyDead) {
  pass(400ms, {"b", "c"});
  now_ += 1h;
  view_.say(now_, word("a"));
  EXPECT_TRUE(view_.advance(now_).empty());
  EXPECT_EQ(view_.state(id("b")), MemberState::kAlive);
  pass(1s, {"b"});  // what waited in its sockets is read
  EXPECT_EQ(view_.state(id("b")), MemberState::kAlive);
  EXPECT_NE(view_.state(id("c")), MemberState::kAlive);
}

TEST_F(ClusterViewTest, WhoWasTriedIsNotChosenAgain) {
  std::vector<NodeId> tried;
  for (int i = 0; i < 3; ++i) {
    const auto choice = view_.choose(function_, tried);
    ASSERT_TRUE(choice);
    EXPECT_EQ(std::count(tried.begin(), tried.end(), choice->node), 0);
    tried.push_back(choice->node);
  }
  EXPECT_FALSE(view_.choose(function_, tried));
}

TEST_F(ClusterViewTest, OneThatDoesNotTakeTheConnectionIsPassedOverAtOnce) {
  const NodeId first = home();
  view_.unreachable(kBegin, first);
  EXPECT_NE(home(), first);
}

TEST_F(ClusterViewTest, ANodeWithoutTokensIsNobodysHome) {
  for (const char* name : {"b", "c"}) {
    NodeWord gateway = word(name);
    gateway.tokens = 0;
    ASSERT_TRUE(view_.hear(kBegin, gateway));
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(view_.choose(function_key("t", std::to_string(i)))->node, view_.self());
}

// Where next to nothing waits, one call is far above the mean, and would move every function off its home.
TEST_F(ClusterViewTest, AShortBacklogMovesNoFunctionFromItsHome) {
  const NodeId first = home();
  ASSERT_TRUE(view_.hear(kBegin, word("b", 0)));
  ASSERT_TRUE(view_.hear(kBegin, word(view_.name(first), 0.5)));
  view_.advance(kBegin);
  EXPECT_EQ(home(), first);
  ASSERT_TRUE(view_.hear(kBegin, word(view_.name(first), 20)));
  view_.advance(kBegin);
  EXPECT_NE(home(), first);
}

TEST_F(ClusterViewTest, WordsThatCannotBeTrueAreRefusedWithTheFieldAndTheBound) {
  const auto refused = [this](auto change) {
    NodeWord lie = word("b");
    change(lie);
    const auto heard = view_.hear(kBegin, lie);
    return heard ? std::string("believed") : heard.error().message;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const double amount : {-1.0, nan, infinity, 9.3e18}) {
    EXPECT_THAT(refused([=](NodeWord& w) { w.tokens = amount; }), HasSubstr("tokens")) << amount;
    EXPECT_THAT(refused([=](NodeWord& w) { w.backlog_s = amount; }), HasSubstr("backlog")) << amount;
  }
  EXPECT_THAT(refused([](NodeWord& w) { w.number = std::uint64_t{1} << 63; }), HasSubstr("number"));
  EXPECT_THAT(refused([](NodeWord& w) { w.incarnation = ~std::uint64_t{0}; }), HasSubstr("incarnation"));
  EXPECT_THAT(refused([](NodeWord& w) { w.warm = std::make_shared<WarmFunctions>(kMostWarmFunctions + 1); }),
              HasSubstr("warm"));
  EXPECT_THAT(refused([](NodeWord& w) {
                w.warm = std::make_shared<WarmFunctions>(WarmFunctions{2, 1});
              }),
              HasSubstr("order"));
  for (const double served : {-1.0, nan, infinity, 1e300}) {
    EXPECT_THAT(refused([=](NodeWord& w) { w.tenants = {{1, served, true}}; }), HasSubstr("service")) << served;
  }
  EXPECT_THAT(refused([](NodeWord& w) { w.tenants = {{1, 0, true}, {1, 0, true}}; }), HasSubstr("each once"));
  EXPECT_THAT(refused([](NodeWord& w) {
                for (std::uint64_t i = 0; i <= kMostTenantsSaid; ++i) w.tenants.push_back({i, 0, true});
              }),
              HasSubstr("at most 64"));
  EXPECT_THAT(refused([](NodeWord& w) { w.name = "a"; }), HasSubstr("this node"));
  EXPECT_THAT(refused([](NodeWord&) {}), "believed");
}

TEST_F(ClusterViewTest, TenantsClocksAreOfAllNodesThatLive) {
  const std::uint64_t busy = tenant_key("busy"), other = tenant_key("other");
  double served = 0;
  const auto exchange = [&] {
    now_ += 200ms;
    served += 0.4;  // all that two slots can
    NodeWord own = word("a"), of_b = word("b"), of_c = word("c");
    own.tenants = {{other, served, true}};
    of_b.tenants = of_c.tenants = {{busy, served, true}};
    view_.say(now_, own);
    EXPECT_TRUE(view_.hear(now_, of_b));
    EXPECT_TRUE(view_.hear(now_, of_c));
    view_.advance(now_);
  };
  for (int i = 0; i < 10; ++i) exchange();
  EXPECT_LT(factor(busy), 0.5);
  EXPECT_GT(factor(other), 2);
  for (int i = 0; i < 20; ++i) {
    now_ += 200ms;
    view_.say(now_, word("a"));
    view_.advance(now_);
  }
  EXPECT_EQ(factor(busy), 1) << "who said that it waits is dead";
}

TEST_F(ClusterViewTest, NamesAreBoundedAndTheOwnOneIsTaken) {
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string(65, 'x'), std::string("x\0y", 3), std::string("é")}) {
    EXPECT_FALSE(view_.meet(kBegin, name)) << name;
  }
  EXPECT_EQ(view_.meet(kBegin, "a").error().code, Errc::kConflict);
  for (std::size_t i = view_.size(); i < kMostNodes; ++i) EXPECT_TRUE(view_.meet(kBegin, "n" + std::to_string(i)));
  EXPECT_EQ(view_.meet(kBegin, "one-more").error().code, Errc::kResourceExhausted);
  EXPECT_TRUE(view_.meet(kBegin, "b"));
}

}  // namespace
}  // namespace fairlead
