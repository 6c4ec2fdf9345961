#include "decide/residency/memory_returns.h"

#include "decide/residency/residency_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MemoryReturnsTest : public ResidencyParts {
 protected:
  std::vector<std::string> decided() {
    returns.decide(now, device(), out);
    return taken();
  }
};

TEST_F(MemoryReturnsTest, RoomIsMadeForWhatRunsAndItsMemoryReturnsWhenItFits) {
  idles(kA, gib(6));
  MemoryRecord& b = runs(kB, gib(1), gib(3));
  EXPECT_THAT(decided(), ElementsAre("out 1 2")) << "8 hold A's 6 and B's 4 but for 2";
  MemoryRecord& a = ledger.at(kA);
  ledger.end_move(now, a, RecordEvent::kLeft, MoveDirection::kOut, MoveOutcome::kDone);
  EXPECT_THAT(decided(), ElementsAre("in 2 3"));
  EXPECT_TRUE(b.state.moving());
}

TEST_F(MemoryReturnsTest, WhatCannotLeaveIsStoppedForWhatRuns) {
  MemoryRecord& a = idles(kA, gib(6));
  ledger.begin_move(now, a, RecordEvent::kLeaves, gib(6), out);
  ledger.give_up_move(a);
  taken();
  runs(kB, gib(1), gib(3));
  EXPECT_THAT(decided(), ElementsAre("stop 1"));
}

TEST_F(MemoryReturnsTest, TheOldestDispatchReturnsFirst) {
  now = Instant(2s);
  runs(kA, Bytes(0), gib(5));
  now = Instant(1s);
  runs(kB, Bytes(0), gib(5));
  EXPECT_THAT(decided(), ElementsAre("in 2 5")) << "both do not fit";
}

TEST_F(MemoryReturnsTest, WhatIsAboutToRunReturnsTheLongestQueueFirst) {
  idles(kA, Bytes(0), gib(2));
  idles(kB, Bytes(0), gib(2));
  queue(kA, 1);
  queue(kB, 5);
  EXPECT_THAT(decided(), ElementsAre("in 2 2", "in 1 2"));
}

TEST_F(MemoryReturnsTest, AnExpectedUseIsNotTradedForAnother) {
  idles(kA, Bytes(0), gib(4));
  idles(kB, gib(6));
  queue(kA, 1);
  demand.of[FlowId(2)] = {Claim::kKept, 0};
  device().anticipated_at = device().freed;  // nobody is foreseen
  EXPECT_THAT(decided(), IsEmpty());
  demand.of[FlowId(2)] = {Claim::kLeaving, 0};
  device().some_called = true;
  EXPECT_THAT(decided(), ElementsAre("out 2 2"));
}

TEST_F(MemoryReturnsTest, AThreadThatWaitsIsServedIntoFreeRoom) {
  MemoryRecord& a = idles(kA, gib(1), gib(1));
  MemoryLedger::must_take(a, RecordEvent::kWants);
  ledger.recount(a);
  EXPECT_THAT(decided(), ElementsAre("in 1 1"));
}

TEST_F(MemoryReturnsTest, WhatIsExpectedSoonestReturnsOneAtATimeWheneverSomethingWasFreed) {
  MemoryRecord& a = idles(kA, Bytes(0), gib(1));
  idles(kB, Bytes(0), gib(1));
  functions[FlowId(1)].pace = {.mean = 10s, .last = now};
  functions[FlowId(2)].pace = {.mean = 20s, .last = now};
  EXPECT_THAT(decided(), ElementsAre("in 1 1"));
  EXPECT_THAT(decided(), IsEmpty()) << "something moves";
  ledger.end_move(now, a, RecordEvent::kReturned, MoveDirection::kIn, MoveOutcome::kDone);
  EXPECT_THAT(decided(), IsEmpty()) << "nothing was freed since";
  ++device().freed;
  EXPECT_THAT(decided(), ElementsAre("in 2 1"));
}

TEST_F(MemoryReturnsTest, WhatIsExpectedTwiceAsLateLeavesForIt) {
  idles(kA, Bytes(0), gib(4));
  idles(kB, gib(6));
  functions[FlowId(1)].pace = {.mean = 10s, .last = now};
  functions[FlowId(2)].pace = {.mean = 19s, .last = now};
  EXPECT_THAT(decided(), IsEmpty());
  ++device().freed;
  functions[FlowId(2)].pace.mean = 21s;
  EXPECT_THAT(decided(), ElementsAre("out 2 2"));
}

TEST_F(MemoryReturnsTest, WhereNothingMovesOnlyRunsReturn) {
  MemoryReturns none(ledger, victims, demand, MemoryPolicy::kNone);
  runs(kA, gib(1), gib(1));
  idles(kB, Bytes(0), gib(1));
  queue(kB, 3);
  none.decide(now, device(), out);
  EXPECT_THAT(taken(), ElementsAre("in 1 1"));
}

}  // namespace
}  // namespace fairlead
