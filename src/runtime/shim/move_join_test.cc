#include "runtime/shim/move_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/shim/cap_shares.h"
#include "runtime/shim/rate_limit.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using wire::FrameKind;
using wire::Moved;
using wire::MoveResult;
using Order = MoveJoin::Order;

constexpr auto kOut = FrameKind::kSwapOut;
constexpr auto kIn = FrameKind::kSwapIn;

Moved out(MoveResult result, std::uint64_t bytes) {
  return {kOut, result, bytes, 10, 20};
}
Moved in(MoveResult result, std::uint64_t bytes) {
  return {kIn, result, bytes, 10, 20};
}

TEST(MoveJoin, TheLargestGivesFirstAndNoMoreThanIsAsked) {
  MoveJoin moves;
  EXPECT_THAT(moves.swap_out(10, {{1, 4, 0}, {2, 8, 0}, {3, 4, 0}}),
              ElementsAre(Order{2, SwapDirection::kOut, 8}, Order{1, SwapDirection::kOut, 2}));
}

TEST(MoveJoin, EverythingIsAskedOfAllWhoHoldSomething) {
  MoveJoin moves;
  EXPECT_THAT(moves.swap_out(MoveJoin::kEverything, {{1, 4, 0}, {2, 0, 9}}),
              ElementsAre(Order{1, SwapDirection::kOut, MoveJoin::kEverything}));
}

TEST(MoveJoin, AnswersBecomeOneWhenTheLastIsThere) {
  MoveJoin moves;
  moves.swap_out(12, {{1, 4, 0}, {2, 8, 0}});
  EXPECT_TRUE(moves.answered(1, out(MoveResult::kDone, 4)));
  EXPECT_FALSE(moves.take_finished());
  EXPECT_TRUE(moves.answered(2, {kOut, MoveResult::kDone, 8, 30, 15}));
  const auto outcome = moves.take_finished();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, (SwapOutcome{SwapDirection::kOut, MoveResult::kDone, Bytes(12), Duration(40), Duration(20)}));
  EXPECT_TRUE(moves.idle());
}

TEST(MoveJoin, WhatKeptAPartBackIsSaid) {
  struct Case {
    Moved first, second;
    MoveResult joined;
  };
  const Case cases[] = {
      {out(MoveResult::kDone, 4), out(MoveResult::kBusy, 0), MoveResult::kPartly},
      {out(MoveResult::kBusy, 0), out(MoveResult::kNoRoom, 0), MoveResult::kBusy},
      {out(MoveResult::kNoRoom, 0), out(MoveResult::kNothing, 0), MoveResult::kNoRoom},
      {out(MoveResult::kNothing, 0), out(MoveResult::kNothing, 0), MoveResult::kNothing},
      {out(MoveResult::kFailed, 0), out(MoveResult::kNoRoom, 0), MoveResult::kNoRoom},
      {out(MoveResult::kFailed, 0), out(MoveResult::kNothing, 0), MoveResult::kFailed},
      {out(MoveResult::kFailed, 0), out(MoveResult::kDone, 8), MoveResult::kPartly},
      {out(MoveResult::kDone, 8), out(MoveResult::kNothing, 0), MoveResult::kDone},
      {out(MoveResult::kPartly, 9), out(MoveResult::kDone, 8), MoveResult::kDone},  // more than asked together
  };
  for (const Case& one : cases) {
    MoveJoin moves;
    moves.swap_out(16, {{1, 8, 0}, {2, 8, 0}});
    EXPECT_TRUE(moves.answered(1, one.first));
    EXPECT_TRUE(moves.answered(2, one.second));
    EXPECT_EQ(moves.take_finished()->result, one.joined);
  }
}

TEST(MoveJoin, NothingToMoveIsFinishedAtOnce) {
  MoveJoin moves;
  EXPECT_THAT(moves.swap_in({{1, 5, 0}}), IsEmpty());
  EXPECT_EQ(moves.take_finished()->result, MoveResult::kNothing);
}

TEST(MoveJoin, ASwapInBehindASwapOutGoesToThoseThatAreLeaving) {
  MoveJoin moves;
  moves.swap_out(MoveJoin::kEverything, {{1, 4, 0}});
  EXPECT_THAT(moves.swap_in({{1, 4, 0}, {2, 4, 0}}), ElementsAre(Order{1, SwapDirection::kIn, 0}));
  EXPECT_FALSE(moves.answered(1, in(MoveResult::kDone, 4))) << "the swap-out is older";
  EXPECT_TRUE(moves.answered(1, out(MoveResult::kDone, 4)));
  EXPECT_TRUE(moves.answered(1, in(MoveResult::kDone, 4)));
  EXPECT_EQ(moves.take_finished()->direction, SwapDirection::kOut);
  EXPECT_EQ(moves.take_finished()->direction, SwapDirection::kIn);
  EXPECT_FALSE(moves.answered(1, in(MoveResult::kDone, 4))) << "nothing is asked any more";
}

TEST(MoveJoin, MovesEndInTheOrderTheyBegan) {
  MoveJoin moves;
  moves.swap_out(8, {{1, 4, 0}, {2, 4, 0}});
  moves.swap_out(4, {{2, 4, 0}});
  EXPECT_TRUE(moves.answered(2, out(MoveResult::kDone, 4)));
  EXPECT_TRUE(moves.answered(2, out(MoveResult::kDone, 4)));
  EXPECT_FALSE(moves.take_finished());
  moves.lost(1, MoveResult::kNothing);
  EXPECT_EQ(moves.take_finished()->bytes, Bytes(4));
  EXPECT_EQ(moves.take_finished()->bytes, Bytes(4));
}

TEST(MoveJoin, AProcessThatIsLostAnswersAllItWasAsked) {
  MoveJoin moves;
  moves.swap_out(MoveJoin::kEverything, {{1, 4, 0}});
  moves.swap_in({{1, 4, 0}});
  moves.lost(1, MoveResult::kBusy);
  EXPECT_EQ(moves.take_finished()->result, MoveResult::kBusy);
  EXPECT_EQ(moves.take_finished()->result, MoveResult::kBusy);
  moves.lost(1, MoveResult::kBusy);
  EXPECT_TRUE(moves.idle());
}

TEST(CapShares, AddUpToTheCap) {
  EXPECT_THAT(cap_shares(100, {10, 50}), ElementsAre(30, 70));
  EXPECT_THAT(cap_shares(100, {0, 0, 0}), ElementsAre(33, 33, 34));
  EXPECT_THAT(cap_shares(100, {}), IsEmpty());
}

TEST(CapShares, WhatIsHeldIsNeverTakenAndZeroMeansNoCapSoItIsNotUsed) {
  EXPECT_THAT(cap_shares(100, {100, 0}), ElementsAre(100, 1));
  EXPECT_THAT(cap_shares(100, {400, 20}), ElementsAre(100, 20)) << "a claim beyond the cap is worth the cap";
}

TEST(RateLimit, ABurstThenTheRate) {
  RateLimit limit(10, 3);
  Instant now{std::chrono::seconds(5)};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.take(now));
  EXPECT_FALSE(limit.take(now));
  now += std::chrono::milliseconds(100);
  EXPECT_TRUE(limit.take(now));
  EXPECT_FALSE(limit.take(now));
  now += std::chrono::seconds(100);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.take(now));
  EXPECT_FALSE(limit.take(now));
}

}  // namespace
}  // namespace fairlead
