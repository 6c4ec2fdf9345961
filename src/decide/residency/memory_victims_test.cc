#include "decide/residency/memory_victims.h"

#include "decide/residency/residency_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MemoryVictimsTest : public ResidencyParts {
 protected:
  std::vector<InstanceId> may_leave(const VictimsWanted& wanted) {
    std::vector<SwapCandidate> found;
    collect_victims(now, device(), demand, wanted, found);
    std::vector<InstanceId> ids;
    for (const SwapCandidate& one : found) ids.push_back(one.instance);
    return ids;
  }
};

TEST_F(MemoryVictimsTest, WhoMayLeaveDependsOnWhatTheRoomIsFor) {
  idles(kA, gib(1));
  idles(kB, gib(1));
  idles(kC, gib(1));
  demand.of[FlowId(2)] = {Claim::kKept, 0};
  demand.of[FlowId(3)] = {Claim::kQueued, 2};
  EXPECT_THAT(may_leave({.displace = Displace::kAnyIdle}), ElementsAre(kA, kB, kC));
  EXPECT_THAT(may_leave({.displace = Displace::kNotQueued}), ElementsAre(kA, kB));
  EXPECT_THAT(may_leave({.displace = Displace::kLeaving}), ElementsAre(kA));
  EXPECT_THAT(may_leave({.displace = Displace::kNobody}), IsEmpty());
  EXPECT_THAT(may_leave({.except = kA}), ElementsAre(kB, kC));
}

TEST_F(MemoryVictimsTest, WhatRunsOrMovesOrHasNothingDoesNotLeave) {
  runs(kA, gib(2));
  idles(kB, Bytes(0));
  ledger.begin_move(now, idles(kC, gib(2)), RecordEvent::kLeaves, gib(2), out);
  EXPECT_THAT(may_leave({}), IsEmpty());
}

TEST_F(MemoryVictimsTest, WhoCameBackForAWaiterDoesNotLeaveForAnother) {
  MemoryRecord& a = idles(kA, gib(1), gib(1));
  MemoryLedger::must_take(a, RecordEvent::kWants);
  MemoryLedger::must_take(a, RecordEvent::kReturns);
  MemoryLedger::must_take(a, RecordEvent::kReturned);
  reports(a, gib(2));
  EXPECT_THAT(may_leave({.displace = Displace::kLeavingUnlessServed}), IsEmpty());
  EXPECT_THAT(may_leave({.displace = Displace::kLeaving}), ElementsAre(kA));
}

TEST_F(MemoryVictimsTest, OnlyWhatIsExpectedTwiceAsLateLeaves) {
  functions[FlowId(1)].pace = functions[FlowId(2)].pace = {};
  idles(kA, gib(1));
  const Duration gap = expected_gap(now, demand, ledger.at(kA));
  EXPECT_THAT(may_leave({.later_than = gap / 2 - 1ns}), ElementsAre(kA));
  EXPECT_THAT(may_leave({.later_than = gap / 2}), IsEmpty());
}

TEST_F(MemoryVictimsTest, OnlyTheBytesThatAreShortLeaveLeastRecentlyUsedFirst) {
  now = Instant(2s);
  idles(kA, gib(4));
  now = Instant(1s);
  idles(kB, gib(3));
  EXPECT_EQ(victims.collect(now, device(), {}), gib(7));
  EXPECT_EQ(victims.swap_out(now, gib(4), out), gib(4));
  EXPECT_THAT(taken(), ElementsAre("out 2 3", "out 1 1"));
}

TEST_F(MemoryVictimsTest, WhereNoMemoryMovesNobodyLeaves) {
  MemoryVictims none(ledger, demand, std::make_unique<LruSwap>(), false);
  idles(kA, gib(4));
  EXPECT_EQ(none.collect(now, device(), {}), Bytes(0));
  EXPECT_EQ(none.swap_out(now, gib(4), out), Bytes(0));
}

TEST_F(MemoryVictimsTest, IdleInstancesAreStoppedButThoseInSeatsAndTheAsker) {
  idles(kA, gib(2));
  idles(kB, gib(2));
  idles(kC, gib(2));
  demand.seated = kA;
  EXPECT_EQ(victims.stop_idle(now, device(), gib(8), kB, out), gib(2));
  EXPECT_THAT(taken(), ElementsAre("stop 3"));
}

}  // namespace
}  // namespace fairlead
