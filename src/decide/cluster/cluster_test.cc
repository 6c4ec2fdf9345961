// Parts of the cluster's decisions, one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"
#include "decide/cluster/home_choice.h"
#include "decide/cluster/one_hop.h"
#include "decide/cluster/reservation_split.h"
#include "decide/cluster/tenant_clocks.h"

namespace fairlead {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kClass = "a100";

HomeOrders orders_of(std::size_t nodes) {
  HomeOrders orders;
  for (std::size_t i = 1; i <= nodes; ++i) orders.add(NodeId(i), node_key("node-" + std::to_string(i)), kClass);
  return orders;
}

TEST(HomeOrders, AreAlikeInWhateverOrderNodesCame) {
  HomeOrders forward = orders_of(40), backward;
  for (std::size_t i = 40; i >= 1; --i) backward.add(NodeId(i), node_key("node-" + std::to_string(i)), kClass);
  for (std::uint64_t f = 0; f < 50; ++f) {
    for (std::size_t place = 0; place < 40; ++place) {
      ASSERT_EQ(forward.at(f, kClass, place), backward.at(f, kClass, place));
    }
    EXPECT_FALSE(forward.at(f, kClass, 40));
  }
  EXPECT_FALSE(forward.at(1, "h100", 0));
}

TEST(HomeOrders, ANodeThatGoesMovesItsOwnFunctionsAloneAndTheyAreOneOfN) {
  constexpr std::size_t kNodes = 20, kFunctions = 20'000;
  HomeOrders orders = orders_of(kNodes);
  std::vector<NodeId> before;
  for (std::uint64_t f = 0; f < kFunctions; ++f)
    before.push_back(*orders.at(function_key("t", std::to_string(f)), kClass, 0));
  const NodeId gone(7);
  std::size_t moved = 0;
  std::vector<NodeId> second;
  for (std::uint64_t f = 0; f < kFunctions; ++f)
    second.push_back(*orders.at(function_key("t", std::to_string(f)), kClass, 1));
  orders.remove(gone);
  for (std::uint64_t f = 0; f < kFunctions; ++f) {
    const NodeId now = *orders.at(function_key("t", std::to_string(f)), kClass, 0);
    if (before[f] == gone) {
      ++moved;
      ASSERT_EQ(now, second[f]);
    } else {
      ASSERT_EQ(now, before[f]);
    }
  }
  EXPECT_NEAR(static_cast<double>(moved), kFunctions / kNodes, 0.15 * kFunctions / kNodes);
  orders.add(gone, node_key("node-7"), kClass);  // and back
  for (std::uint64_t f = 0; f < kFunctions; ++f)
    ASSERT_EQ(*orders.at(function_key("t", std::to_string(f)), kClass, 0), before[f]);
}

TEST(HomeOrders, TenantAndFunctionAreTwoNames) {
  EXPECT_NE(function_key("a", "bc"), function_key("ab", "c"));
  EXPECT_NE(function_key("", "a"), function_key("a", ""));
}

struct MembersTest : ::testing::Test {
  MembersTest() { members.add(now, a); }
  MemberState after(Duration silence) {
    now += silence;
    members.advance(now);
    return members.state(a);
  }
  const NodeId a{1};
  Instant now{seconds(10)};
  Members members{MemberTimes{}};
};

TEST_F(MembersTest, SilenceMakesSuspectThenDead) {
  EXPECT_EQ(members.heard(now, a, {1, 1}), Heard::kNews);
  EXPECT_EQ(after(milliseconds(599)), MemberState::kAlive);
  EXPECT_EQ(after(milliseconds(1)), MemberState::kSuspect);
  EXPECT_FALSE(members.takes_calls(a));
  EXPECT_EQ(members.heard(now, a, {1, 2}), Heard::kNews);
  EXPECT_EQ(members.state(a), MemberState::kAlive);
  EXPECT_EQ(after(milliseconds(2999)), MemberState::kSuspect);
  EXPECT_EQ(after(milliseconds(1)), MemberState::kDead);
  EXPECT_FALSE(members.may_live(a));
}

TEST_F(MembersTest, AnOldWordRevivesNobody) {
  members.heard(now, a, {4, 10});
  after(seconds(4));
  EXPECT_EQ(members.heard(now, a, {4, 11}), Heard::kThoughtDead);
  EXPECT_EQ(members.heard(now, a, {3, 99}), Heard::kOld);
  EXPECT_EQ(members.state(a), MemberState::kDead);
  EXPECT_EQ(members.heard(now, a, {5, 1}), Heard::kNews);
  EXPECT_EQ(members.state(a), MemberState::kAlive);
  EXPECT_EQ(members.heard(now, a, {4, 12}), Heard::kOld);
}

TEST_F(MembersTest, AWordThatIsHeardTwiceBreaksNoSilence) {
  members.heard(now, a, {1, 5});
  now += milliseconds(500);
  EXPECT_EQ(members.heard(now, a, {1, 5}), Heard::kOld);
  EXPECT_EQ(members.heard(now, a, {1, 4}), Heard::kOld);
  EXPECT_EQ(after(milliseconds(100)), MemberState::kSuspect);
}

TEST_F(MembersTest, NobodysWordAboutAnotherEndsANodeThatIsHeard) {
  members.heard(now, a, {1, 1});
  members.rumoured_dead(now, a, 1);
  EXPECT_EQ(members.state(a), MemberState::kAlive);
  members.unreachable(now, a);
  EXPECT_EQ(members.state(a), MemberState::kSuspect);
  members.rumoured_dead(now, a, 2);  // of an incarnation that nobody has heard of
  EXPECT_EQ(members.state(a), MemberState::kSuspect);
  members.rumoured_dead(now, a, 1);
  EXPECT_EQ(members.state(a), MemberState::kDead);
}

TEST_F(MembersTest, ADrainIsANodesOwnWordAndTheEpochCountsIt) {
  members.heard(now, a, {1, 1});
  const std::uint64_t before = members.epoch();
  members.heard(now, a, {1, 2, true});
  EXPECT_EQ(members.state(a), MemberState::kDraining);
  EXPECT_FALSE(members.takes_calls(a));
  EXPECT_GT(members.epoch(), before);
  members.left(a, 1);
  EXPECT_EQ(members.state(a), MemberState::kLeft);
  EXPECT_EQ(members.heard(now, a, {1, 3}), Heard::kThoughtDead);
  EXPECT_EQ(members.heard(now, a, {2, 1}), Heard::kNews);
  EXPECT_TRUE(members.takes_calls(a));
}

TEST_F(MembersTest, TimesThatCannotBeAreNamed) {
  EXPECT_TRUE(validate(MemberTimes{}));
  EXPECT_THAT(validate(MemberTimes{.suspect_after = milliseconds(300)}).error().message,
              HasSubstr("suspect after is 300 ms"));
  EXPECT_THAT(validate(MemberTimes{.dead_after = milliseconds(500)}).error().message,
              HasSubstr("dead after is 500 ms"));
  EXPECT_THAT(validate(MemberTimes{.gossip_period = Duration(0)}).error().message, HasSubstr("gossip period is 0 ms"));
}

PeerLoads loads_of(std::vector<double> backlogs, BoundSettings settings = {}) {
  PeerLoads loads(settings);
  for (std::size_t i = 0; i < backlogs.size(); ++i)
    loads.report({.node = NodeId(i + 1), .tokens = 2, .backlog_s = backlogs[i]});
  loads.settle(Instant(), [](NodeId) { return true; });
  return loads;
}

TEST(PeerLoads, TheBoundIsRelativeToTheMeanBacklog) {
  PeerLoads loads = loads_of({1, 2, 3, 6});
  EXPECT_DOUBLE_EQ(loads.bound_per_token(), 1.5 * 12 / 8);
  EXPECT_TRUE(loads.is_within_bound(NodeId(3)));
  EXPECT_FALSE(loads.is_within_bound(NodeId(4)));
}

TEST(PeerLoads, WhatWasSentSinceTheReportCountsUntilTheNext) {
  PeerLoads loads = loads_of({1, 1, 1, 1});
  loads.sent(NodeId(1), 3);
  EXPECT_DOUBLE_EQ(loads.load_per_token(NodeId(1)), 2);
  EXPECT_FALSE(loads.is_within_bound(NodeId(1)));
  loads.answered(NodeId(1), 3);
  loads.report({.node = NodeId(1), .tokens = 2, .backlog_s = 1});
  EXPECT_DOUBLE_EQ(loads.load_per_token(NodeId(1)), 0.5);
}

TEST(PeerLoads, WhatIsNoNumberIsBroughtWithinBounds) {
  PeerLoads loads({});
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinite = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(loads.report({.node = NodeId(1), .tokens = kNan, .backlog_s = 1}));
  EXPECT_TRUE(loads.report({.node = NodeId(2), .tokens = kInfinite, .backlog_s = -5}));
  EXPECT_TRUE(loads.report({.node = NodeId(3), .tokens = 2, .backlog_s = kNan}));
  EXPECT_FALSE(loads.report({.version = kLoadReportVersion + 1, .node = NodeId(4), .tokens = 2}));
  loads.settle(Instant(), [](NodeId) { return true; });
  EXPECT_FALSE(loads.is_within_bound(NodeId(1)));
  EXPECT_FALSE(loads.is_within_bound(NodeId(2)));  // tokens that are no number are none
  EXPECT_DOUBLE_EQ(loads.load_per_token(NodeId(3)), BoundSettings{}.longest_backlog_s);
  EXPECT_FALSE(loads.knows(NodeId(4)));
}

TEST(PeerLoads, SettingsThatCannotBeAreNamed) {
  EXPECT_TRUE(validate(BoundSettings{}));
  EXPECT_THAT(validate(BoundSettings{.c = 1}).error().message, HasSubstr("c is 1"));
  EXPECT_FALSE(validate(BoundSettings{.most_of_median = 0}));
  EXPECT_FALSE(validate(BoundSettings{.patience = Duration(0)}));
}

TEST(HomeChoice, PrefersAWarmNodeWithinTheBoundAndNoOther) {
  HomeOrders orders = orders_of(4);
  Members members{MemberTimes{}};
  for (std::uint64_t i = 1; i <= 4; ++i) members.add(Instant(), NodeId(i));
  const std::uint64_t f = 77;
  const NodeId second = *orders.at(f, kClass, 1), third = *orders.at(f, kClass, 2);
  const auto warm = std::make_shared<const WarmFunctions>(WarmFunctions{f});
  for (const bool second_is_full : {false, true}) {
    PeerLoads loads({});
    for (std::uint64_t i = 1; i <= 4; ++i) {
      const NodeId node(i);
      loads.report({.node = node,
                    .tokens = 2,
                    .backlog_s = node == second && second_is_full ? 5.0 : 1.0,
                    .warm = node == second || node == third ? warm : nullptr});
    }
    loads.settle(Instant(), [](NodeId) { return true; });
    const auto choice = choose_home({orders, members, loads}, f, kClass, {});
    EXPECT_EQ(choice->node, second_is_full ? third : second);
    EXPECT_EQ(choice->reason, HomeReason::kWarm);
    EXPECT_EQ(choose_home({orders, members, loads}, f, kClass, {.warm_search = 1})->place, 0u);
  }
}

TEST(OneHop, AHopHeaderIsBelievedOfPeersOnly) {
  EXPECT_EQ(judge_hop({.hops = 1}, {}), HopVerdict::kRefuse);
  EXPECT_EQ(judge_hop({.hops = 2, .is_from_peer = true}, {.is_chosen = true}), HopVerdict::kRefuse);
}

TEST(OneHop, OnlyANewerMapOrADrainSendsACallBack) {
  const OwnView elsewhere{.epoch = 6, .is_chosen = false, .may_run = true, .knows_other = true};
  EXPECT_EQ(judge_hop({.hops = 1, .is_from_peer = true, .sender_epoch = 5}, elsewhere), HopVerdict::kMisdirected);
  EXPECT_EQ(judge_hop({.hops = 1, .is_from_peer = true, .sender_epoch = 6}, elsewhere), HopVerdict::kRun);
  const OwnView drains{.epoch = 6, .is_chosen = false, .may_run = false, .knows_other = true};
  EXPECT_EQ(judge_hop({.hops = 1, .is_from_peer = true, .sender_epoch = 9}, drains), HopVerdict::kMisdirected);
  EXPECT_EQ(judge_hop({}, {.may_run = false}), HopVerdict::kUnavailable);
}

TEST(ReservationSplit, IsInProportionAndExact) {
  EXPECT_THAT(in_proportion(10, {30, 10}), ElementsAre(8, 2));
  EXPECT_THAT(in_proportion(10, {0, 0, 0}), ElementsAre(4, 3, 3));
  EXPECT_THAT(in_proportion(1, {1, 1'000'000'000'000}), ElementsAre(0, 1));
}

TEST(ReservationSplit, WhoGrowsWaitsForWhoShrinks) {
  ReservationSplit split(10);
  const NodeId a(1), b(2);
  split.join(a);
  split.join(b);
  split.aim({{a, 30}, {b, 10}});
  EXPECT_EQ(split.told(a).share, 8u);
  EXPECT_EQ(split.told(b).share, 2u);
  const std::uint64_t before = split.told(a).number;
  split.aim({{a, 10}, {b, 30}});
  EXPECT_EQ(split.told(a).share, 3u);
  EXPECT_EQ(split.told(b).share, 2u);
  split.applies(a, before);  // of what it was told before: it may still use 8
  EXPECT_EQ(split.told(b).share, 2u);
  split.applies(a, split.told(a).number);
  EXPECT_EQ(split.told(b).share, 7u);
  split.lose(b);
  EXPECT_EQ(split.told(a).share, 10u);
}

LoadReport served(NodeId node, std::uint64_t number, std::vector<TenantService> tenants) {
  return {.node = node, .incarnation = 1, .number = number, .tokens = 2, .tenants = std::move(tenants)};
}

// Of a cluster in which all that wait somewhere wait everywhere, unless a test says who waits where.
class TenantClocksTest : public testing::Test {
 protected:
  void begin(const TenantClockSettings& settings) { clocks_ = TenantClocks(settings); }
  void pass(Duration time) { now_ += time; }
  void say(NodeId node, std::vector<TenantService> tenants) {
    clocks_.report(now_, served(node, ++number_, std::move(tenants)));
  }
  void advance() { clocks_.advance(now_); }
  double lead(std::uint64_t tenant, const TenantKeys& among = {}) const {
    return clocks_.lead_s(tenant, clocks_.middle_s(among));
  }
  double factor(std::uint64_t tenant, const TenantKeys& among = {}) const {
    return clocks_.factor(tenant, clocks_.middle_s(among));
  }

  static constexpr Duration kForEver = std::chrono::hours(24 * 365);
  TenantClocks clocks_{
      {.half_lead = seconds(4), .memory = kForEver, .hold = Duration(0)}};  // 2 tokens, 2 tenants: 4 s halve
  Instant now_{seconds(1)};
  std::uint64_t number_ = 0;
};

TEST_F(TenantClocksTest, WhoWasServedMoreCountsLess) {
  say(NodeId(1), {{1, 0, true}, {2, 0, true}});
  advance();
  pass(seconds(4));
  say(NodeId(1), {{1, 8, true}, {2, 0, true}});
  advance();
  EXPECT_NEAR(lead(1), 4, 1e-5);
  EXPECT_NEAR(factor(1), 0.5, 1e-5);
  EXPECT_NEAR(factor(2), 2, 1e-5);
}

TEST_F(TenantClocksTest, IdlenessEarnsNothing) {
  say(NodeId(1), {{1, 0, true}, {2, 0, false}});
  advance();
  pass(seconds(100));
  say(NodeId(1), {{1, 200, true}, {2, 0, false}});
  advance();
  say(NodeId(1), {{1, 200, true}, {2, 0, true}});
  advance();
  EXPECT_DOUBLE_EQ(lead(2), 0);
}

TEST_F(TenantClocksTest, ServiceThatNobodyWaitedForCostsNothing) {
  say(NodeId(1), {{1, 0, false}, {2, 0, false}});
  advance();
  for (int i = 1; i < 100; ++i) {
    pass(seconds(1));
    say(NodeId(1), {{1, 2.0 * i, false}, {2, 0, false}});
    advance();
  }
  pass(seconds(1));
  say(NodeId(1), {{1, 200, true}, {2, 0, true}});  // both begin to wait within one period
  advance();
  EXPECT_DOUBLE_EQ(factor(1), 1);
  EXPECT_DOUBLE_EQ(factor(2), 1);
}

// 7, 8 and 9 wait on a node that serves nothing; 1, 2 and 3 are no less fair to each other for it.
TEST_F(TenantClocksTest, WhoCannotBeServedElsewhereTouchesNobodyHere) {
  begin({.half_lead = seconds(1)});
  double of_1 = 0, of_2 = 0;
  for (int i = 0; i < 1000; ++i) {
    pass(seconds(1));
    say(NodeId(1), {{1, of_1, true}, {2, of_2, true}, {3, of_2, true}});
    say(NodeId(2), {{7, 0, true}, {8, 0, true}, {9, 0, true}});
    advance();
    of_1 += i == 998 ? 1.2 : 0.6;
    of_2 += 0.6;
  }
  const TenantKeys here{1, 2, 3};
  EXPECT_NEAR(lead(1, here), 0.6, 0.02);
  EXPECT_NEAR(factor(1, here), std::exp2(-0.9), 0.01) << "4 tokens, 6 tenants: a half_lead is 2/3 s";
  EXPECT_NEAR(factor(2, here), 1, 1e-9);
  EXPECT_GT(lead(1, {7, 8, 9}), 20);
}

// 1 had a node alone while 2 and 3 shared another one. Who comes to 1's node shares it with 1, and does not have it alone to catch up with 1.
TEST_F(TenantClocksTest, WhoBeginsToWaitJoinsThoseThatWaitThere) {
  double of_1 = 0, of_2 = 0;
  for (int i = 0; i < 100; ++i, pass(seconds(1)), of_1 += 2, of_2 += 0.25) {
    say(NodeId(1), {{1, of_1, true}});
    say(NodeId(2), {{2, of_2, true}, {3, of_2, true}});
    advance();
  }
  say(NodeId(1), {{1, of_1, true}, {4, 0, true}});
  advance();
  EXPECT_NEAR(factor(1, {1, 4}), 1, 1e-6);
  EXPECT_NEAR(factor(4, {1, 4}), 1, 1e-6);
  EXPECT_LT(factor(1, {1, 2}), 0.01) << "where 2 comes to it, too, 2 had less";
}

TEST_F(TenantClocksTest, ALeadIsForgotten) {
  begin({.half_lead = seconds(1), .memory = seconds(60), .hold = Duration(0)});
  double of_1 = 0;
  for (int i = 0; i < 3600; ++i, pass(seconds(1)), of_1 += 2) {
    say(NodeId(1), {{1, of_1, true}, {2, 0, true}});  // who knows why 2 is not served; it is no debt of an hour
    advance();
  }
  EXPECT_NEAR(lead(1) - lead(2), 2 * 60, 2);
  say(NodeId(1), {{1, of_1, true}, {2, 0, true}});
  advance();
  for (int i = 0; i < 600; ++i) {
    pass(milliseconds(200));
    say(NodeId(1), {{1, of_1, true}, {2, 0, true}});
    advance();
  }
  EXPECT_NEAR(lead(1) - lead(2), 120 / std::exp(2), 1) << "two minutes later, whatever the period";
}

TEST_F(TenantClocksTest, WhoWaitsForItsOwnLimitsIsNotBehindAndItsLeadCounts) {
  say(NodeId(1), {{1, 0, true}, {2, 0, true}, {3, 0, true}});
  advance();
  pass(seconds(4));
  say(NodeId(1), {{1, 8, false}, {2, 0, false}, {3, 4, true}});
  advance();
  EXPECT_NEAR(lead(1), 4, 1e-5) << "it has more, whatever it waits for";
  EXPECT_LT(factor(1), 1);
  EXPECT_EQ(lead(2), 0) << "it does not want more";
  EXPECT_EQ(factor(2), 1);
}

TEST_F(TenantClocksTest, AMomentWithoutAQueueIsNoIdleness) {
  begin({.half_lead = seconds(4), .memory = kForEver, .hold = seconds(1)});
  say(NodeId(1), {{1, 0, true}, {2, 0, true}});
  advance();
  pass(seconds(4));
  say(NodeId(1), {{1, 8, true}, {2, 0, true}});
  advance();
  pass(milliseconds(200));
  say(NodeId(1), {{1, 8, false}, {2, 0, false}});
  advance();
  pass(milliseconds(200));
  say(NodeId(1), {{1, 8, true}, {2, 0, true}});
  advance();
  EXPECT_NEAR(lead(1), 4, 1e-5);
  pass(milliseconds(1001));
  say(NodeId(1), {{1, 8, false}, {2, 0, false}});
  advance();
  pass(milliseconds(1001));
  say(NodeId(1), {{1, 8, true}, {2, 0, true}});
  advance();
  EXPECT_EQ(lead(1), 0);
}

TEST_F(TenantClocksTest, WhatIsOwedFromWhenNobodyWaitedIsForgotten) {
  say(NodeId(1), {{1, 0, false}, {2, 0, false}});
  advance();
  pass(seconds(1));
  say(NodeId(1), {{1, 100, false}, {2, 0, false}});  // long calls that end together
  advance();
  for (int i = 0; i < 10; ++i) {
    pass(seconds(1));
    say(NodeId(1), {{1, 100, true}, {2, 0, true}});
    advance();
  }
  EXPECT_EQ(factor(1), 1);
}

TEST_F(TenantClocksTest, AWordAddsNoMoreThanTheNodeCanServe) {
  say(NodeId(1), {{1, 0, true}, {2, 0, true}});
  advance();
  pass(seconds(1));
  say(NodeId(1), {{1, 1e12, true}, {2, std::numeric_limits<double>::quiet_NaN(), true}});
  advance();
  EXPECT_NEAR(lead(1), 1.5, 1e-5);  // 2 tokens x 1 s x 1.5, before a middle of half of that
  pass(seconds(1));
  say(NodeId(1), {{1, 5, true}, {2, 0, true}});  // it fell
  advance();
  EXPECT_NEAR(lead(1), 1.5, 1e-5);
}

TEST_F(TenantClocksTest, WhatANodeClaimsInOneWordIsBelievedOfAllItsTenantsAlike) {
  say(NodeId(1), {{1, 0, true}, {2, 0, true}, {3, 0, true}});
  advance();
  pass(seconds(1));
  say(NodeId(1), {{1, 4, true}, {2, 4, true}, {3, 0, true}});  // 8 of the 3 that it could serve
  advance();
  EXPECT_NEAR(lead(1) - lead(3), 1.5, 1e-5);
  EXPECT_NEAR(lead(2) - lead(3), 1.5, 1e-5);
}

// A call of 8 s on a node of 2 tokens is said when it ends.
TEST_F(TenantClocksTest, ALongCallIsBelievedAsItCouldHaveBeenServed) {
  say(NodeId(1), {{1, 0, true}, {2, 0, true}});
  advance();
  for (const double expected : {1.5, 3.0, 4.0, 4.0}) {
    pass(seconds(1));
    say(NodeId(1), {{1, 8, true}, {2, 0, true}});
    advance();
    EXPECT_NEAR(lead(1), expected, 1e-5);
  }
}

TEST_F(TenantClocksTest, WhatIsClaimedBeyondAMinuteOfTheNodeIsNotOwed) {
  begin({.memory = kForEver, .hold = Duration(0), .most_owed = seconds(10)});
  say(NodeId(1), {{1, 0, true}, {2, 0, true}});
  advance();
  for (int i = 0; i < 1000; ++i) {
    pass(seconds(1));
    say(NodeId(1), {{1, 1e6, true}, {2, 0, true}});
    advance();
  }
  EXPECT_NEAR(lead(1) - lead(2), 20, 0.01) << "2 tokens for 10 s";
}

// A node of more tenants than a word has room for names one of them late: what it was served before is nobody's to judge.
TEST_F(TenantClocksTest, WhoIsNamedLateIsNotChargedItsPast) {
  std::vector<TenantService> full;
  for (std::uint64_t i = 0; i < kMostTenantsSaid; ++i) full.push_back({100 + i, 0, true});
  say(NodeId(1), full);
  advance();
  pass(seconds(1000));
  full[0] = {7, 1000, true};
  say(NodeId(1), full);
  advance();
  EXPECT_EQ(lead(7), 0);
  pass(seconds(1));
  full[0].seconds += 1;
  say(NodeId(1), full);
  advance();
  EXPECT_NEAR(lead(7), 1, 1e-4);
}

// Nor is one whom a gateway forgot, as a node had named too many.
TEST_F(TenantClocksTest, TenantsThatCameLastAreHeardThoughManyWereNamedBefore) {
  for (std::uint64_t name = 100; name < 5100; name += 50) {
    std::vector<TenantService> word;
    for (std::uint64_t i = 0; i < 50; ++i) word.push_back({name + i, 5, false});
    pass(seconds(1000));
    say(NodeId(1), std::move(word));
    advance();
  }
  const auto both = [&](double of_100, double of_1) {
    pass(seconds(10));
    say(NodeId(1), {{1, of_1, true}, {100, of_100, true}});
    advance();
  };
  both(500, 0);
  EXPECT_EQ(lead(100), 0) << "served before, when it was not named";
  both(504, 0);
  EXPECT_NEAR(lead(100) - lead(1), 4, 1e-4);
}

// What a node with the cluster's key can say at worst.
TEST_F(TenantClocksTest, ALiarFillsNoMemoryAndLeavesFactorsInTheirBounds) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  clocks_.set_weight(1, 2);
  for (std::uint64_t number = 1; number < 20; ++number) {
    pass(milliseconds(200));
    std::vector<TenantService> lie{{1, 1e300, true}, {2, nan, true}, {3, infinity, true}, {4, -5, true}};
    for (std::uint64_t i = 0; i < 10'000; ++i) lie.push_back({number * 100'000 + i, 1e300 / double(number), true});
    LoadReport report = served(NodeId(2), number, std::move(lie));
    if (number % 2 == 0) report.tokens = nan;
    clocks_.report(now_, report);
    say(NodeId(1), {{1, double(number), true}, {5, double(number), true}});
    advance();
    for (const std::uint64_t tenant : {1, 2, 3, 4, 5, 100'001}) {
      ASSERT_TRUE(std::isfinite(lead(tenant))) << tenant;
      ASSERT_GE(factor(tenant), 1.0 / 1024);
      ASSERT_LE(factor(tenant), 1024);
    }
  }
  EXPECT_EQ(factor(100'000 * 19 + 9'999), 1) << "of 10,000 names of one node, 1,000 are kept";
}

TEST_F(TenantClocksTest, AnIncarnationBeginsAtNothingAndADeadNodeWaitsForNobody) {
  say(NodeId(1), {{1, 50, true}, {2, 0, true}});  // its past is not judged
  advance();
  EXPECT_DOUBLE_EQ(lead(1), 0);
  pass(seconds(10));
  LoadReport again = served(NodeId(1), 1, {{1, 8, true}, {2, 0, true}});
  again.incarnation = 2;
  clocks_.report(now_, again);
  advance();
  EXPECT_NEAR(lead(1), 4, 1e-4);
  clocks_.forget(NodeId(1));
  advance();
  EXPECT_EQ(factor(1), 1);
}

}  // namespace
}  // namespace fairlead
