// Planted and caught: idle pipelines that keep their slices; a tenant that loses what it needs to one that has more; two tenants that push each
// other out in turns; a pipeline that goes as soon as it came.
#include "decide/pipeline/slice_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

SliceHolder holder(const std::string& tenant, int slices, Duration idle, Duration held = 1h) {
  return {.tenant = tenant, .slices = slices, .idle = idle, .held = held};
}
SliceClaims claims(std::vector<SliceHolder> holders, std::map<std::string, double> weights = {}) {
  return {{.idle = 30s, .least_stay = 10s}, std::move(weights), std::move(holders)};
}

TEST(SliceClaims, LongestIdleGoesFirstWhoeverHasIt) {
  const auto all = claims({holder("a", 1, 30s), holder("a", 2, 60s), holder("a", 4, 29s), holder("a", 1, 0s)});
  EXPECT_THAT(all.leavers_for({"a", 0s}), ElementsAre(1, 0));
  EXPECT_THAT(all.leavers_for({"a", 1s}), ElementsAre(1, 0, 2));
}

TEST(SliceClaims, WhoHasMoreThanItsShareGivesUpWhatIsIdleThenWhatIsBusy) {
  const auto all = claims({holder("a", 4, 0s), holder("a", 2, 1s), holder("a", 1, 31s)});
  EXPECT_THAT(all.leavers_for({"b", 1s}), ElementsAre(2, 1, 0));
  EXPECT_THAT(all.leavers_for({"a", 1s}), ElementsAre(2, 1)) << "its own busy ones it does not push out";
}

TEST(SliceClaims, NobodyEndsWithMoreForItsWeightThanTheOtherHad) {
  EXPECT_THAT(claims({holder("a", 4, 0s), holder("b", 3, 0s)}).leavers_for({"b", 1s}), IsEmpty());
  EXPECT_THAT(claims({holder("a", 3, 0s), holder("b", 4, 0s)}).leavers_for({"a", 1s}), IsEmpty()) << "and not back";
  EXPECT_THAT(claims({holder("a", 4, 0s)}).leavers_for({"b", 1s}), IsEmpty()) << "it would have as much";
  EXPECT_THAT(claims({holder("a", 4, 0s)}, {{"b", 2}}).leavers_for({"b", 1s}), ElementsAre(0))
      << "4 / 2 is less than 4";
  EXPECT_DOUBLE_EQ(claims({holder("a", 4, 0s)}, {{"a", 2}}).load("a"), 2);
}

TEST(SliceClaims, WhatATenantIsSlowToLeaveCountsWhereItAsksForMore) {
  const ClaimTerms terms{.idle = 30s, .least_stay = 10s};
  const std::vector<SliceHolder> held = {holder("a", 1, 0s), holder("a", 1, 0s), holder("a", 1, 0s),
                                         holder("b", 1, 0s)};
  EXPECT_THAT(SliceClaims(terms, {}, held).leavers_for({"b", 1s}), ElementsAre(0, 1, 2));
  EXPECT_THAT(SliceClaims(terms, {}, held, {{"b", 1}}).leavers_for({"b", 1s}), IsEmpty());
  EXPECT_DOUBLE_EQ(SliceClaims(terms, {{"b", 2}}, held, {{"b", 1}, {"c", 3}}).load_with_leaving("b"), 1);
  EXPECT_DOUBLE_EQ(SliceClaims(terms, {}, held, {{"c", 3}}).load_with_leaving("c"), 3);
  EXPECT_DOUBLE_EQ(SliceClaims(terms, {}, held, {{"c", 3}}).load("c"), 0);
}

// Of four slices b gets two, however long what a gave up takes to empty: slices on their way count once where they are taken from.
TEST(SliceClaims, WhoGivesUpIsNotAskedAgainForWhatItIsLeaving) {
  const ClaimTerms terms{.idle = 30s, .least_stay = 10s};
  const std::vector<SliceHolder> held = {holder("a", 1, 0s), holder("a", 1, 0s), holder("b", 1, 0s),
                                         holder("b", 1, 0s)};
  EXPECT_THAT(SliceClaims(terms, {}, held, {{"a", 2}}).leavers_for({"b", 1s}), IsEmpty());
}

TEST(SliceClaims, WhoCameLatelyOrIsHotStays) {
  auto lately = holder("a", 7, 60s, 9s), starts = holder("a", 7, 60s);
  lately.is_hot = true;
  starts.may_leave = false;
  EXPECT_THAT(claims({lately, starts}).leavers_for({"b", 1s}), IsEmpty());
}

TEST(SliceClaims, WhoSharesGoesForARequestThoughItWasUsedLately) {
  auto used = holder("a", 1, 1ms, 2s), runs = holder("a", 1, 0s, 2s), hot = holder("a", 1, 1ms, 2s);
  hot.is_hot = true;
  EXPECT_THAT(claims({used, runs, hot}).leavers_for({"a", 1ms}), ElementsAre(0));
  EXPECT_THAT(claims({used, runs, hot}).leavers_for({"a", 0s}), IsEmpty()) << "nobody has called who waits";
  EXPECT_THAT(claims({holder("a", 1, 1ms, 19ms)}).leavers_for({"a", 1s}), IsEmpty()) << "it came just now";
  auto slow = used;
  slow.comes_back = 501ms;
  EXPECT_THAT(claims({slow}).leavers_for({"a", 1s}), ElementsAre(0)) << "it is not known to be used again soon";
  slow.gap = 1s;
  EXPECT_THAT(claims({slow}).leavers_for({"a", 1s}), IsEmpty()) << "it took half a second to start, and has run for 2";
  slow.idle = 1999ms;
  EXPECT_THAT(claims({slow}).leavers_for({"a", 1s}), IsEmpty());
  slow.idle = 2004ms;
  EXPECT_THAT(claims({slow}).leavers_for({"a", 1s}), ElementsAre(0)) << "nor is it used as often as it was";
  slow.idle = 1ms;
  slow.comes_back = 1min;
  slow.held = 10s;
  EXPECT_THAT(claims({slow}).leavers_for({"a", 1s}), ElementsAre(0)) << "a turn is long enough for anybody";
}

TEST(SliceClaims, OfThoseThatShareWhoIsMissedLeastGoesFirst) {
  auto often = holder("a", 1, 1ms), rarely = often, slow = often, once = often;
  often.comes_back = rarely.comes_back = once.comes_back = 1s;
  slow.comes_back = 4s;
  often.gap = 2s;
  rarely.gap = slow.gap = 10s;
  EXPECT_THAT(claims({often, slow, rarely, once}).leavers_for({"a", 1s}), ElementsAre(3, 2, 1, 0));
}

TEST(SliceClaims, ATenantWithMoreDoesNotShareWhatOneWithLessHas) {
  const auto all = claims({holder("a", 3, 0s), holder("b", 1, 1s)});
  EXPECT_THAT(all.leavers_for({"a", 5s}), IsEmpty());
  EXPECT_THAT(all.leavers_for({"b", 5s}), ElementsAre(1)) << "with 4 it would have more than a has now";
}

TEST(SliceClaims, WhoWaitedForATurnGetsItFromWhoHadThemLongestHotOrNot) {
  auto hot = holder("a", 1, 0s, 60s), longer = holder("a", 1, 0s, 90s), lately = holder("a", 1, 0s, 9s);
  hot.is_hot = longer.is_hot = lately.is_hot = true;
  const auto all = claims({hot, longer, lately});
  EXPECT_THAT(all.leavers_for({"a", 9s}), IsEmpty());
  EXPECT_THAT(all.leavers_for({"a", 10s}), ElementsAre(1, 0));
}

TEST(SliceClaims, WhoSharesAndIsBusyGoesForATurnHoweverLatelyItCame) {
  auto shares = holder("a", 1, 0s, 200ms), hot = holder("a", 1, 0s, 9s);
  hot.is_hot = true;
  const auto all = claims({shares, hot});
  EXPECT_THAT(all.leavers_for({"a", 9s}), IsEmpty());
  EXPECT_THAT(all.leavers_for({"a", 10s}), ElementsAre(0));
  EXPECT_FALSE(all.comes_first({"a", 9s}));
  EXPECT_TRUE(all.comes_first({"a", 10s}));
  EXPECT_THAT(all.leavers_in_time("a"), ElementsAre(0, 1));
  EXPECT_THAT(claims({holder("a", 1, 0s), holder("b", 2, 0s)}).leavers_in_time("b"), ElementsAre(1));
  EXPECT_THAT(claims({holder("a", 1, 0s, 90s), holder("b", 1, 0s, 60s)}).leavers_for({"b", 10s}), ElementsAre(1, 0))
      << "a function that needs both, of a tenant that has as much: its own first";
}

TEST(SliceClaims, TenantsTakeTurnsWhereOneHasNothing) {
  const auto all = claims({holder("a", 4, 0s)});
  EXPECT_THAT(all.leavers_for({"b", 9s}), IsEmpty()) << "it would have as much";
  EXPECT_THAT(all.leavers_for({"b", 10s}), ElementsAre(0));
  EXPECT_THAT(claims({holder("a", 1, 0s), holder("b", 2, 0s)}).leavers_for({"b", 1h}), ElementsAre(1))
      << "of who has less than it, it takes none";
}

// Random requests on few slices. Nobody waits for more than its turn, whoever is hot.
TEST(SliceClaims, EverybodyHasATurn) {
  constexpr std::size_t kFunctions = 7, kSlices = 2;
  struct Function {
    Instant since{};  // it has slices, or its request waits
    bool has = false, is_hot = false;
  };
  std::vector<Function> functions(kFunctions);
  std::mt19937_64 random(7);
  Duration longest{0};
  Instant now{};
  for (std::size_t i = 0; i < kSlices; ++i) functions[i].has = true;
  for (int step = 0; step < 100'000; ++step) {
    now += 20ms;
    std::vector<SliceHolder> holders;
    std::vector<std::size_t> owner;
    for (std::size_t i = 0; i < kFunctions; ++i) {
      Function& one = functions[i];
      if (!one.has) continue;
      one.is_hot = random() % 8 != 0;
      holders.push_back(holder("a", 1, one.is_hot ? 0s : 5ms, now - one.since));
      holders.back().is_hot = one.is_hot;
      owner.push_back(i);
    }
    std::size_t waits = kFunctions;
    for (std::size_t i = 0; i < kFunctions; ++i) {
      if (functions[i].has) continue;
      if (waits == kFunctions || functions[i].since < functions[waits].since) waits = i;
    }
    const Duration waited = now - functions[waits].since;
    longest = std::max(longest, waited);
    const auto leavers = claims(holders).leavers_for({"a", waited});
    if (leavers.empty()) continue;
    Function& leaves = functions[owner[leavers.front()]];
    leaves.has = false;
    functions[waits].has = true;
    leaves.since = functions[waits].since = now;
  }
  EXPECT_LE(longest, 10s * (kFunctions / kSlices) + 1s);
  EXPECT_GT(longest, 1s);
}

}  // namespace
}  // namespace fairlead
