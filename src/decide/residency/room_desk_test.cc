#include "decide/residency/room_desk.h"

#include "decide/residency/residency_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RoomDeskTest : public ResidencyParts {
 protected:
  std::vector<std::string> answers() {
    room.answer_all(now, device(), out);
    return taken();
  }
  bool ask(InstanceId id, std::uint64_t number, Bytes bytes) {
    return room.ask(now + 30s, ledger.at(id), number, bytes);
  }
};

TEST_F(RoomDeskTest, ANumberIsAskedForOnce) {
  runs(kA, gib(1));
  EXPECT_TRUE(ask(kA, 1, gib(1)));
  EXPECT_FALSE(ask(kA, 1, gib(1)));
  EXPECT_TRUE(ask(kA, 2, gib(1)));
}

TEST_F(RoomDeskTest, IdleMemoryLeavesForItAndThenItIsGranted) {
  MemoryRecord& idle = idles(kA, gib(7));
  runs(kB, gib(1));
  ask(kB, 1, gib(3));
  EXPECT_THAT(answers(), ElementsAre("out 1 3"));
  EXPECT_THAT(answers(), IsEmpty()) << "it waits for the move";
  ledger.end_move(now, idle, RecordEvent::kLeft, MoveDirection::kOut, MoveOutcome::kDone);
  ledger.tell_requests(device(), kA, true);
  EXPECT_THAT(answers(), ElementsAre("granted 2"));
  EXPECT_EQ(ledger.at(kB).occupied(), gib(4)) << "nobody's memory returns into it";
}

TEST_F(RoomDeskTest, WhatHasBecomeFreeIsBelievedOnce) {
  runs(kA, gib(1));
  ask(kA, 1, gib(2));
  EXPECT_THAT(answers(), ElementsAre("granted 1"));
  ask(kA, 2, gib(2));
  EXPECT_THAT(answers(), ElementsAre("refused 1")) << "nothing was freed since: the books are wrong";
}

TEST_F(RoomDeskTest, MoreThanTheDeviceHasIsRefusedAtOnce) {
  runs(kA, gib(1));
  runs(kB, gib(1));
  ask(kA, 1, gib(9));
  EXPECT_THAT(answers(), ElementsAre("refused 1"));
}

TEST_F(RoomDeskTest, ItWaitsForWhatRunsAndCountsWithWhatItAsksFor) {
  runs(kA, gib(1));
  runs(kB, gib(7));
  ask(kA, 1, gib(3));
  EXPECT_THAT(answers(), ElementsAre("needs more 1"));
  EXPECT_EQ(ledger.at(kA).demand, gib(4));
  EXPECT_THAT(answers(), IsEmpty());
  ledger.erase(ledger.at(kB));
  EXPECT_THAT(answers(), ElementsAre("granted 1"));
}

TEST_F(RoomDeskTest, AtItsDeadlineAnInvocationIsRefusedAndAStartGivesWay) {
  runs(kA, gib(7));
  runs(kB, gib(1));
  reports(starts(kC, gib(0)), Bytes(0));
  ask(kB, 1, gib(2));
  ask(kC, 2, gib(2));
  answers();
  now += 30s;
  EXPECT_THAT(answers(), ElementsAre("refused 2", "gives way 3"));
}

// Two starts on 8 GiB hold 4 GiB each and ask for 2 more.
TEST_F(RoomDeskTest, OfTwoStartsThatWaitForEachOtherTheLaterGivesWay) {
  reports(starts(kA, gib(4)), gib(4));
  now += 1s;
  reports(starts(kB, gib(4)), gib(4));
  ask(kA, 1, gib(2));
  ask(kB, 2, gib(2));
  EXPECT_THAT(answers(), ElementsAre("needs more 1", "needs more 2", "gives way 2"));
  EXPECT_EQ(functions[FlowId(2)].gave_way, 1);
}

TEST_F(RoomDeskTest, TheFourthStartInARowHasTheDeviceForItself) {
  functions[FlowId(2)].gave_way = 2;
  reports(starts(kA, gib(4)), gib(4));
  now += 1s;
  reports(starts(kB, gib(4)), gib(4));
  ask(kA, 1, gib(2));
  ask(kB, 2, gib(2));
  answers();
  EXPECT_EQ(functions[FlowId(2)].footprint.estimate(), gib(8));
}

TEST_F(RoomDeskTest, WhoIsBeingKilledIsAnsweredByNobody) {
  MemoryRecord& a = runs(kA, gib(1));
  ask(kA, 1, gib(1));
  ledger.begin_stop(now, a);
  EXPECT_THAT(answers(), IsEmpty());
  EXPECT_TRUE(device().requests.empty());
}

TEST_F(RoomDeskTest, MemoryThatMustReturnIsAskedForAndNobodyIsTold) {
  idles(kA, gib(7));
  MemoryRecord& b = runs(kB, gib(1), gib(3));
  room.ask_to_return(b);
  EXPECT_THAT(answers(), ElementsAre("out 1 3"));
  ledger.give_up_move(ledger.at(kA));
  answers();
  EXPECT_EQ(ledger.counters().room_granted + ledger.counters().room_refused, 0u);
}

}  // namespace
}  // namespace fairlead
