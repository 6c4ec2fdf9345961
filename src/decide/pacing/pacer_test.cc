// The pacer, event by event. Bugs that were planted and which test saw each are listed in docs/explanation/pacer.md.
#include "decide/pacing/pacer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/pacing/pacing_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using enum PlaceState;

constexpr InstanceId kA(1), kB(2), kC(3);

class PacerTest : public testing::Test {
 protected:
  static PlaceAction open(InstanceId id, Duration until) { return {PlaceAction::Kind::kOpen, id, Instant(until)}; }
  static PlaceAction close(InstanceId id, Duration at) { return {PlaceAction::Kind::kClose, id, Instant(at)}; }
  static PlaceAction revoke(InstanceId id, Duration at) { return {PlaceAction::Kind::kRevoke, id, Instant(at)}; }

  PlaceActions share(Duration at, InstanceId id, int width, int request, int limit = 100) {
    PlaceActions actions;
    const PacedShare one{.width_percent = width, .request_percent = request, .limit_percent = limit};
    EXPECT_TRUE(pacer.set_share(Instant(at), id, one, actions));
    return actions;
  }
  PlaceActions asks(Duration at, InstanceId id, std::optional<Instant> due = std::nullopt) {
    PlaceActions actions;
    pacer.asks(Instant(at), id, due, actions);
    return actions;
  }
  PlaceActions idle(Duration at, InstanceId id) {
    PlaceActions actions;
    pacer.idle(Instant(at), id, actions);
    return actions;
  }
  PlaceActions drained(Duration at, InstanceId id) {
    PlaceActions actions;
    pacer.drained(Instant(at), id, actions);
    return actions;
  }
  PlaceActions gone(Duration at, InstanceId id) {
    PlaceActions actions;
    pacer.gone(Instant(at), id, actions);
    return actions;
  }
  PlaceActions tick(Duration at) {
    PlaceActions actions;
    pacer.tick(Instant(at), actions);
    return actions;
  }
  Duration credit(Duration at, InstanceId id) { return pacer.view(Instant(at), id)->credit; }

  Pacer pacer{PlaceOptions{}};
};

TEST_F(PacerTest, AloneItIsLetInAtOnceAndStays) {
  share(0s, kA, 100, 0);
  EXPECT_EQ(pacer.next_tick(), std::nullopt);
  EXPECT_THAT(asks(5ms, kA), ElementsAre(open(kA, 7ms)));
  EXPECT_EQ(pacer.next_tick(), Instant(7ms));
  EXPECT_THAT(tick(7ms), ElementsAre(open(kA, 9ms)));
  EXPECT_THAT(idle(8ms, kA), ElementsAre(close(kA, 8ms)));
  EXPECT_EQ(pacer.width_held(), 0);
  EXPECT_THAT(tick(9ms), IsEmpty());
  EXPECT_EQ(pacer.next_tick(), std::nullopt);
}

TEST_F(PacerTest, TheChosenHaveTheirRoomReservedWhileOthersDrain) {
  share(0s, kA, 60, 0);
  share(0s, kB, 100, 50);
  share(0s, kC, 40, 0);
  EXPECT_THAT(asks(10ms, kA), ElementsAre(open(kA, 12ms)));
  EXPECT_THAT(asks(10ms, kB), IsEmpty());
  EXPECT_THAT(tick(12ms), IsEmpty());  // B has credit: all of the SMs are its, once A has drained
  EXPECT_EQ(pacer.state_of(kA), kDraining);
  EXPECT_EQ(pacer.state_of(kB), kChosen);
  EXPECT_THAT(asks(12100us, kC), IsEmpty());  // 40 % idle, and would keep B out
  EXPECT_THAT(drained(12300us, kA), ElementsAre(open(kB, 14ms)));
  EXPECT_EQ(pacer.state_of(kC), kAsks);
}

TEST_F(PacerTest, OnlyHolesOfTheChosenAreFilled) {
  share(0s, kA, 60, 0);
  share(0s, kB, 70, 50);
  share(0s, kC, 30, 0);
  asks(10ms, kA);
  asks(10ms, kB);
  tick(12ms);
  EXPECT_THAT(asks(12100us, kC), ElementsAre(open(kC, 14ms)));  // beside B, whatever becomes of A
  EXPECT_THAT(drained(12300us, kA), ElementsAre(open(kB, 14ms)));
  EXPECT_EQ(pacer.width_held(), 100);
}

// A answers one request after another, with 0.2 ms between two.
class PacerWhoComesBack : public PacerTest {
 protected:
  // A has come back once, and is away again at 11.1 ms; the frame ends at 12 ms.
  void SetUp() override {
    share(0s, kA, 100, 34);
    share(0s, kB, 100, 0);
    asks(10ms, kA);
    idle(10500us, kA);
    EXPECT_THAT(asks(10700us, kA), ElementsAre(open(kA, 12ms)));
    asks(11ms, kB);
    EXPECT_THAT(idle(11100us, kA), ElementsAre(close(kA, 11100us)));
  }
};

TEST_F(PacerWhoComesBack, FindsItsRoomKept) {
  EXPECT_EQ(pacer.next_tick(), Instant(11500us));
  EXPECT_THAT(asks(11300us, kA), ElementsAre(open(kA, 12ms)));
}

TEST_F(PacerWhoComesBack, IsWaitedForTwiceAsLongAsItWasAway) {
  EXPECT_THAT(tick(11499us), IsEmpty());
  EXPECT_THAT(tick(11500us), ElementsAre(open(kB, 12ms)));
  EXPECT_EQ(pacer.next_tick(), Instant(12ms));
  EXPECT_THAT(asks(11600us, kA), IsEmpty());
}

TEST_F(PacerWhoComesBack, IsWaitedForBeyondAFramesEnd) {
  asks(11300us, kA);
  idle(11900us, kA);
  EXPECT_THAT(tick(12ms), IsEmpty());
  EXPECT_EQ(pacer.state_of(kB), kAsks);
  EXPECT_THAT(asks(12100us, kA), ElementsAre(open(kA, 14ms)));
  EXPECT_EQ(pacer.state_of(kB), kAsks);
}

TEST_F(PacerWhoComesBack, KeepsNobodyOutWhoHasCredit) {
  share(11100us, kC, 100, 30);
  EXPECT_THAT(asks(11200us, kC), ElementsAre(open(kC, 12ms)));
}

TEST_F(PacerWhoComesBack, LeavesWhatItsWidthLeaves) {
  share(11100us, kA, 60, 34);
  share(11100us, kC, 40, 0);
  EXPECT_THAT(asks(11200us, kC), ElementsAre(open(kC, 12ms)));
  EXPECT_EQ(pacer.state_of(kB), kAsks);
}

TEST_F(PacerWhoComesBack, IsNotWaitedForOnceItWasLongAway) {
  tick(11500us);
  tick(12ms);
  idle(13ms, kB);
  tick(14ms);
  EXPECT_THAT(asks(20ms, kA), ElementsAre(open(kA, 22ms)));
  asks(20200us, kB);
  EXPECT_THAT(idle(20500us, kA), ElementsAre(close(kA, 20500us), open(kB, 22ms)));
}

TEST_F(PacerWhoComesBack, PaysForTheRoomThatIsKept) {
  const Duration before = credit(11100us, kA);
  pacer.used(Instant(11200us), kA, 0s);  // late news of what it did before
  asks(11300us, kA);
  EXPECT_EQ(credit(11300us, kA), before + 200us * 34 / 100 - 200us);
}

TEST_F(PacerTest, WhoComesBackAndDoesNothingKeepsNoMoreThanItsRequest) {
  share(0s, kA, 100, 30);
  share(0s, kB, 100, 0);
  Duration had{0}, at = 10ms;
  const auto advance = [&](Duration until) {
    if (pacer.state_of(kB) == kOpen) had += until - at;
    at = until;
  };
  asks(at, kB);
  for (Duration next = 10ms; next < 5s;) {  // A: 10 us of work, 0.4 ms away, and again
    const auto to = [&](Duration until) {
      while (pacer.next_tick() && *pacer.next_tick() <= Instant(until)) {
        advance(pacer.next_tick()->time_since_epoch());
        tick(at);
        if (pacer.state_of(kB) == kDraining || pacer.state_of(kB) == kDrainingAsks) {
          drained(at, kB);
          asks(at, kB);
        }
      }
      advance(until);
    };
    to(next);
    asks(at, kA);
    to(next + 10us);
    if (pacer.state_of(kA) == kOpen) pacer.used(Instant(at), kA, 10us);
    idle(at, kA);
    next += 410us;
  }
  EXPECT_GT(had, 60 * 5s / 100);
}

TEST_F(PacerWhoComesBack, IsNotWaitedForWhereItHasGone) {
  EXPECT_THAT(gone(11200us, kA), ElementsAre(open(kB, 12ms)));
}

TEST_F(PacerTest, WhoHasNoCreditIsNotWaitedFor) {
  share(0s, kA, 100, 0);
  share(0s, kB, 100, 0);
  asks(10ms, kA);
  idle(10500us, kA);
  asks(10700us, kA);
  asks(11ms, kB);
  EXPECT_THAT(idle(11100us, kA), ElementsAre(close(kA, 11100us), open(kB, 12ms)));
}

TEST_F(PacerTest, TheEndOfAFrameIsNotFilled) {
  share(0s, kA, 50, 0);
  share(0s, kB, 50, 0);
  asks(10ms, kA);
  EXPECT_THAT(asks(11900us, kB), IsEmpty());
  EXPECT_THAT(tick(12ms), UnorderedElementsAre(open(kA, 14ms), open(kB, 14ms)));
}

TEST_F(PacerTest, CreditGrowsWhileIdleUpToAWindow) {
  share(0s, kA, 50, 40);
  EXPECT_EQ(credit(500ms, kA), 200ms);
  EXPECT_EQ(credit(10s, kA), 400ms);
  share(11s, kA, 50, 20);  // what is above the new request's window is lost
  EXPECT_EQ(credit(11s, kA), 200ms);
}

TEST_F(PacerTest, ANewShareBringsNoCredit) {
  share(5s, kA, 50, 40);
  EXPECT_EQ(credit(5s, kA), 0s);
}

TEST_F(PacerTest, OverRunIsDebt) {
  share(0s, kA, 100, 10);
  asks(10ms, kA);  // credit 1 ms
  tick(12ms);      // spent: 2, earned 0.2; alone, it goes on without credit
  EXPECT_EQ(pacer.view(Instant(12ms), kA)->entitled, 0s);
  pacer.used(Instant(12ms), kA, 2ms);
  EXPECT_EQ(pacer.view(Instant(12ms), kA)->entitled, 2ms);
  EXPECT_EQ(credit(12ms, kA), -800us);
  share(12ms, kB, 100, 50);
  asks(13ms, kB);
  tick(14ms);  // B has credit, A drains until 19 ms
  EXPECT_EQ(pacer.state_of(kA), kDraining);
  drained(19ms, kA);
  EXPECT_EQ(credit(19ms, kA),
            -800us + 700us - 5ms);  // what it ran past 14 ms; the frame before was extra and cost nothing
}

TEST_F(PacerTest, WhatIdleTimeGivesBeyondTheRequestCostsNoCredit) {
  share(0s, kA, 100, 10);
  asks(10ms, kA);
  for (Duration at = 12ms; at <= 110ms; at += 2ms) {
    pacer.used(Instant(at), kA, 2ms);
    tick(at);
  }
  EXPECT_GT(credit(110ms, kA), -2ms);
  EXPECT_LE(pacer.view(Instant(110ms), kA)->entitled, 11ms + 2ms);
}

TEST_F(PacerTest, WhoNeverTellsIsChargedTheTimeHeld) {
  share(0s, kA, 100, 50);
  share(0s, kB, 100, 50);
  asks(10ms, kA);
  asks(10ms, kB);
  EXPECT_EQ(credit(11ms, kA), 5500us - 1ms);
  tick(12ms);
  drained(12ms, kA);
  EXPECT_EQ(credit(12ms, kA), 6ms - 2ms);
}

// Nothing is told while a place goes on, frame after frame.
TEST_F(PacerTest, WhoHasNotToldGoesOnUntilItIsTAheadOfWhoWaits) {
  share(0s, kA, 100, 0);
  share(0s, kB, 100, 0);
  asks(0ms, kA);
  asks(0ms, kB);
  for (Duration at = 2ms; at < 12ms; at += 2ms) EXPECT_THAT(tick(at), ElementsAre(open(kA, at + 2ms))) << to_ms(at);
  EXPECT_THAT(tick(12ms), IsEmpty()) << "10 ms are T";
  pacer.used(Instant(12ms), kA, 6ms);
  EXPECT_THAT(drained(12ms, kA), ElementsAre(open(kB, 14ms)));
  EXPECT_EQ(pacer.view(Instant(12ms), kA)->flow_time, Duration(6ms).count() * 100) << "what it told";
}

// However many instances a flow has, together they are T ahead.
TEST_F(PacerTest, WhatAFlowHoldsUntoldIsThatOfAllItsInstances) {
  PlaceActions actions;
  for (const InstanceId id : {kA, kB}) {
    PacedShare half{.width_percent = 50, .request_percent = 0};
    half.flow = FlowId(1);
    ASSERT_TRUE(pacer.set_share(Instant(0s), id, half, actions));
    asks(0ms, id);
  }
  share(0s, kC, 100, 0);
  asks(0ms, kC);
  for (Duration at = 2ms; at < 12ms; at += 2ms)
    EXPECT_THAT(tick(at), UnorderedElementsAre(open(kA, at + 2ms), open(kB, at + 2ms)));
  EXPECT_THAT(tick(12ms), IsEmpty());
}

TEST_F(PacerTest, AReportIsChargedATenthOfTheTimeHeldAtLeast) {
  share(0s, kA, 100, 50);
  asks(10ms, kA);
  pacer.used(Instant(12ms), kA, 0s);
  EXPECT_EQ(credit(12ms, kA), 6ms - 200us);
  pacer.used(Instant(12ms), kA, 1h);
  EXPECT_EQ(credit(12ms, kA), 6ms - 200us);
}

TEST_F(PacerTest, ALimitHoldsOverEveryWindow) {
  share(0s, kA, 100, 0, 30);
  BusyDevice device(pacer, {{.width_percent = 100, .limit_percent = 30}}, [](std::size_t) { return 100us; });
  std::vector<Duration> totals;
  for (int i = 0; i <= 400; ++i) {
    device.run_until(Instant(1s + i * 10ms));
    totals.push_back(device.busy[kA].total);
  }
  EXPECT_GT(totals.back(), 4 * 290ms);
  for (std::size_t i = 0; i + 100 < totals.size(); ++i) EXPECT_LE(totals[i + 100] - totals[i], 300ms + 16ms + 3ms);
}

TEST_F(PacerTest, WhoMustBeLetInNowGoesFirst) {
  share(0s, kA, 100, 50);
  share(0s, kB, 100, 50);
  share(0s, kC, 100, 0);
  asks(100ms, kC);
  asks(100ms, kA);
  asks(101ms, kB, Instant(105ms));
  tick(102ms);
  EXPECT_EQ(pacer.state_of(kB), kChosen);
  EXPECT_EQ(pacer.state_of(kA), kAsks);
}

TEST_F(PacerTest, UrgencyWithoutCreditBuysNothing) {
  share(0s, kA, 100, 50);
  share(100ms, kB, 100, 0);
  share(100ms, kC, 100, 0);
  asks(100ms, kC);
  asks(100ms, kA);
  asks(101ms, kB, Instant(102ms));
  tick(102ms);
  EXPECT_EQ(pacer.state_of(kA), kChosen);
}

TEST_F(PacerTest, WhoDoesNotDrainByItsDeadlineLosesItsPlace) {
  share(0s, kA, 100, 50);
  share(0s, kB, 100, 50);
  asks(10ms, kA);
  asks(10ms, kB);
  tick(12ms);
  EXPECT_EQ(pacer.state_of(kB), kChosen);
  for (Duration at = 14ms; at < 212ms; at += 2ms) EXPECT_THAT(tick(at), IsEmpty());
  EXPECT_EQ(pacer.next_tick(), Instant(212ms));
  EXPECT_THAT(tick(212ms), ElementsAre(revoke(kA, 212ms), open(kB, 214ms)));
  EXPECT_EQ(pacer.state_of(kA), kRevoked);
  EXPECT_THAT(asks(213ms, kA), IsEmpty());  // not before it has drained
  EXPECT_EQ(pacer.state_of(kA), PlaceState::kRevokedAsks);
  drained(213ms, kA);
  EXPECT_EQ(pacer.state_of(kA), kAsks);
  EXPECT_LT(credit(213ms, kA), -90ms);
}

// Its work in flight may wait for what it has not been let in to launch.
TEST_F(PacerTest, WhoWasRevokedAndAsksIsLetInAgainThoughItHasNotDrained) {
  share(0s, kA, 100, 50);
  asks(10ms, kA);
  tick(12ms);               // alone: held on
  share(12ms, kA, 90, 50);  // closes it
  EXPECT_EQ(pacer.next_tick(), Instant(14ms));
  tick(14ms);
  EXPECT_THAT(tick(212ms), ElementsAre(revoke(kA, 212ms)));
  EXPECT_EQ(pacer.state_of(kA), kRevoked);
  EXPECT_EQ(pacer.next_tick(), Instant(1212ms));
  EXPECT_THAT(asks(300ms, kA), IsEmpty());
  EXPECT_THAT(tick(1211ms), IsEmpty());
  EXPECT_THAT(tick(1212ms), ElementsAre(open(kA, 1214ms)));
  EXPECT_LT(credit(1212ms, kA), -590ms) << "charged for all of the time: 1.2 s, of which it was promised half";
  // It has had its chance: others do not wait for it for as long again.
  share(1213ms, kA, 100, 50);
  EXPECT_THAT(tick(1223ms), ElementsAre(revoke(kA, 1223ms)));
  // Nor for ever less: once it drains it is as it was.
  asks(1224ms, kA);
  drained(1300ms, kA);
  EXPECT_EQ(pacer.state_of(kA), kOpen);
  share(1301ms, kA, 90, 50);
  tick(1302ms);
  EXPECT_THAT(tick(1400ms), IsEmpty());
  EXPECT_THAT(tick(1501ms), ElementsAre(revoke(kA, 1501ms)));
}

TEST_F(PacerTest, WhoWasRevokedAndAsksForNothingIsIdleInTheEndAndChargedOnce) {
  share(0s, kA, 100, 50);
  asks(10ms, kA);
  share(11ms, kA, 90, 50);
  tick(12ms);
  tick(211ms);
  EXPECT_EQ(pacer.state_of(kA), kRevoked);
  tick(1211ms);
  EXPECT_EQ(pacer.state_of(kA), PlaceState::kIdle);
  EXPECT_EQ(pacer.next_tick(), std::nullopt);
  const Duration debt = credit(1211ms, kA);
  EXPECT_EQ(credit(2211ms, kA), debt + 500ms) << "no longer";
}

TEST_F(PacerTest, ADebtIsAWindowAtMost) {
  share(0s, kA, 100, 1);
  asks(10ms, kA);
  Duration at = 11ms;
  for (int time = 0; time < 5; ++time) {
    share(at, kA, 90 + time, 1);
    for (const Duration end = at + 1300ms; at < end; at += 1ms) {
      asks(at, kA);
      tick(at);
    }
  }
  EXPECT_GE(credit(at, kA), -1s - 300ms);
  EXPECT_LE(credit(at, kA), -900ms);
}

TEST_F(PacerTest, WhoIsGoneHoldsNothing) {
  share(0s, kA, 100, 50);
  share(0s, kB, 100, 0);
  asks(10ms, kA);
  asks(10ms, kB);
  EXPECT_THAT(gone(10500us, kA), ElementsAre(open(kB, 12ms)));
  EXPECT_EQ(pacer.state_of(kA), std::nullopt);
  EXPECT_THAT(gone(10600us, kB), IsEmpty());
  EXPECT_EQ(pacer.width_held(), 0);
  EXPECT_EQ(pacer.width_reserved(), 0);
  tick(12ms);
  EXPECT_EQ(pacer.next_tick(), std::nullopt);
}

TEST_F(PacerTest, RoomOfWhoDrainsBeyondAFrameIsNotPromisedToOthers) {
  share(0s, kA, 50, 0);
  share(0s, kB, 60, 50);
  share(0s, kC, 50, 50);
  asks(10ms, kA);
  asks(10ms, kB);
  tick(12ms);  // B is chosen, A drains and does not end
  asks(12ms, kC);
  EXPECT_THAT(tick(14ms), ElementsAre(open(kC, 16ms)));
  EXPECT_EQ(pacer.state_of(kB), kAsks);
}

TEST_F(PacerTest, AWiderShareWaitsForTheOldWidthToDrain) {
  share(0s, kA, 40, 0);
  share(0s, kB, 60, 0);
  asks(10ms, kA);
  asks(10ms, kB);
  EXPECT_THAT(share(11ms, kA, 100, 0), ElementsAre(close(kA, 11ms)));
  EXPECT_EQ(pacer.width_held(), 100);
  EXPECT_EQ(pacer.state_of(kA), kDraining);
  drained(11100us, kA);
  EXPECT_EQ(pacer.width_held(), 60);
  EXPECT_EQ(pacer.state_of(kA), kIdle);
}

TEST_F(PacerTest, AFlowTooWideForTheRestGetsAFrameOnceOthersAreTAhead) {
  std::vector<PacedShare> shares = {{.width_percent = 50, .request_percent = 68},
                                    {.width_percent = 100},
                                    {.width_percent = 50},
                                    {.width_percent = 50}};
  BusyDevice device(pacer, shares, [](std::size_t) { return 50us; });
  device.run_until(Instant(6s));
  const double wide = to_seconds(device.busy[kB].total);
  const double narrow = to_seconds(device.busy[kC].total + device.busy[InstanceId(4)].total) / 4;
  EXPECT_NEAR(wide, narrow, 0.03);  // SM time
  EXPECT_GE(to_seconds(device.busy[kA].total), 0.68 * 5 - 0.02);
}

// Idle for a second, A has credit for two seconds of work: it is not late when others get a frame in between.
TEST_F(PacerTest, CreditThatWasSavedUpDoesNotKeepAWideFlowOut) {
  share(0s, kA, 50, 68);
  BusyDevice device(pacer,
                    {{.width_percent = 50, .request_percent = 68}, {.width_percent = 100}, {.width_percent = 50}},
                    [](std::size_t) { return 50us; });
  device.run_until(Instant(1500ms));
  EXPECT_GE(device.busy[kB].total, 50ms);
  EXPECT_GE(to_seconds(device.busy[kA].total), 0.68 * 0.5 - 0.02);
}

TEST_F(PacerTest, AFlowTooWideDoesNotMakeAnybodyLate) {
  share(0s, kA, 50, 90);
  share(0s, kB, 100, 0);
  asks(100ms, kB);
  asks(101ms, kA, Instant(102ms));
  tick(102ms);
  drained(102ms, kB);
  asks(102ms, kB);
  for (Duration at = 104ms; at < 180ms; at += 2ms) {
    asks(at, kA, Instant(at + 2ms));
    pacer.used(Instant(at), kA, 2ms);
    tick(at);
    EXPECT_EQ(pacer.state_of(kA), kOpen) << to_ms(at);
  }
}

TEST_F(PacerTest, AFlowThatReturnsHasSavedNothingUp) {
  share(0s, kA, 100, 0);
  share(0s, kB, 100, 0);
  asks(10ms, kA);
  for (Duration at = 12ms; at <= 500ms; at += 2ms) {
    pacer.used(Instant(at), kA, 2ms);
    tick(at);
  }
  asks(501ms, kB);
  int of_b = 0;
  for (Duration at = 502ms; at <= 601ms; at += 2ms) {
    for (const InstanceId id : {kA, kB}) pacer.used(Instant(at), id, 2ms);
    tick(at);
    for (const InstanceId id : {kA, kB}) {
      if (pacer.state_of(id) != kDraining) continue;
      drained(at, id);
      asks(at, id);
    }
    of_b += pacer.state_of(kB) == kOpen ? 1 : 0;
  }
  EXPECT_NEAR(of_b, 25, 1);
}

TEST_F(PacerTest, InstancesOfOneFlowShareItsTime) {
  PlaceActions actions;
  for (const InstanceId id : {kA, kB, kC}) {
    const FlowId flow(id == kC ? 2 : 1);
    ASSERT_TRUE(pacer.set_share(Instant(), id, {.flow = flow, .width_percent = 60}, actions));
  }
  BusyDevice device(pacer,
                    {{.flow = FlowId(1), .width_percent = 60},
                     {.flow = FlowId(1), .width_percent = 60},
                     {.flow = FlowId(2), .width_percent = 60}},
                    [](std::size_t) { return 20us; });
  device.run_until(Instant(3s));
  EXPECT_NEAR(to_seconds(device.busy[kC].total), 1, 0.05);
}

TEST_F(PacerTest, NoMoreInstancesThanPlacesAndNoShareThatIsNotValid) {
  for (std::uint64_t i = 1; i <= kMostPlaces; ++i) share(0s, InstanceId(i), 1, 1);
  PlaceActions actions;
  EXPECT_THAT(pacer.set_share(Instant(), InstanceId(100), {}, actions).error().message, HasSubstr("64 is the most"));
  EXPECT_THAT(pacer.set_share(Instant(), kA, {.width_percent = 0}, actions).error().message,
              HasSubstr("gpu:compute-percent is 0"));
  EXPECT_TRUE(actions.empty());
}

TEST_F(PacerTest, WhatComesLateOrFromNobodyChangesNothing) {
  EXPECT_THAT(asks(1ms, kA), IsEmpty());
  EXPECT_THAT(drained(1ms, kA), IsEmpty());
  EXPECT_THAT(idle(1ms, kA), IsEmpty());
  EXPECT_THAT(gone(1ms, kA), IsEmpty());
  pacer.used(Instant(1ms), kA, 1ms);
  share(2ms, kA, 50, 0);
  EXPECT_THAT(drained(3ms, kA), IsEmpty());
  EXPECT_THAT(idle(3ms, kA), IsEmpty());
  EXPECT_EQ(pacer.state_of(kA), kIdle);
  EXPECT_THAT(tick(4ms), IsEmpty());
}

TEST_F(PacerTest, DrainedBeforeTheTickCame) {
  share(0s, kA, 100, 0);
  asks(10ms, kA);
  EXPECT_THAT(drained(12ms, kA), IsEmpty());  // its gate closed at 12 ms
  EXPECT_EQ(pacer.width_held(), 0);
  EXPECT_THAT(tick(12ms), IsEmpty());
}

TEST_F(PacerTest, NoWakeInFramesWhoseSetStays) {
  BusyDevice device(pacer, {{.width_percent = 50, .request_percent = 90}, {.width_percent = 50}},
                    [](std::size_t) { return 50us; });
  device.run_until(Instant(2s));
  EXPECT_EQ(device.opened, 2u);
}

TEST(FrameLength, FollowsHowLongDrainsTake) {
  FrameLength length{PlaceOptions{}};
  EXPECT_EQ(length.length(), 2ms);
  for (int i = 0; i < 400; ++i) length.drained_after(100us);
  EXPECT_EQ(length.length(), 2ms);
  for (int i = 0; i < 400; ++i) length.drained_after(500us);
  EXPECT_NEAR(to_ms(length.length()), 5, 0.1);
  for (int i = 0; i < 400; ++i) length.drained_after(1h);
  EXPECT_EQ(length.length(), 10ms);
  for (int i = 0; i < 400; ++i) length.drained_after(-1s);
  EXPECT_EQ(length.length(), 2ms);
}

}  // namespace
}  // namespace fairlead
