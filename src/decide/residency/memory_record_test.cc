#include "decide/residency/memory_record.h"

#include <gtest/gtest.h>

#include "decide/residency/memory_ledger.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

class MemoryRecordTest : public ::testing::Test {
 protected:
  MemoryRecordTest() { record.device = &device; }
  void takes(std::initializer_list<RecordEvent> events) {
    for (const RecordEvent event : events) MemoryLedger::must_take(record, event);
  }
  void reports(Bytes resident, Bytes away, Bytes fixed = Bytes(0)) {
    takes({RecordEvent::kReported});
    record.use = {.held = resident + away, .resident = resident, .away = away, .fixed = fixed};
  }

  MemoryDevice device{.memory = gib(8)};
  MemoryRecord record{.id = InstanceId(1), .flow = FlowId(1)};
};

TEST_F(MemoryRecordTest, WhatHasNeverReportedCountsAsIsExpected) {
  record.demand = gib(3);
  EXPECT_EQ(record.occupied(), gib(3));
  EXPECT_EQ(record.pinned(false), gib(3));
  EXPECT_EQ(record.movable(), Bytes(0));
  EXPECT_EQ(record.books().may_grow, 1) << "nobody knows how much it will take";
}

TEST_F(MemoryRecordTest, WhatRunsReservesItsDemandAndNothingOfItMoves) {
  reports(gib(2), gib(1));
  record.demand = gib(4);
  EXPECT_EQ(record.reserved(), gib(4));
  EXPECT_EQ(record.movable(), Bytes(0));
  EXPECT_TRUE(record.absent());
  EXPECT_EQ(record.returning(), gib(1));
  EXPECT_EQ(record.books().absent_runs, 1);
}

TEST_F(MemoryRecordTest, WhatIdlesReservesWhatItHasAndAllButTheFixedCouldLeave) {
  takes({RecordEvent::kReady, RecordEvent::kUnused});
  reports(gib(4), Bytes(0), gib(1));
  record.demand = gib(6);
  EXPECT_EQ(record.reserved(), gib(4));
  EXPECT_EQ(record.movable(), gib(3));
  EXPECT_EQ(record.pinned(false), gib(1));
  EXPECT_EQ(record.pinned(true), gib(4)) << "where nothing moves all of it stays";
}

TEST_F(MemoryRecordTest, WhatDidNotLeaveWhenItWasAskedStays) {
  takes({RecordEvent::kReady, RecordEvent::kUnused});
  reports(gib(4), Bytes(0));
  takes({RecordEvent::kLeaves, RecordEvent::kNotLeft});
  EXPECT_EQ(record.movable(), Bytes(0));
  EXPECT_EQ(record.pinned(false), gib(4));
}

TEST_F(MemoryRecordTest, WhatIsChosenWhileItLeavesTakesItsRoomBack) {
  takes({RecordEvent::kReady, RecordEvent::kUnused});
  reports(gib(4), Bytes(0));
  takes({RecordEvent::kLeaves});
  record.move.bytes = gib(3);
  EXPECT_EQ(record.outgoing(), gib(3));
  takes({RecordEvent::kChosen});
  EXPECT_EQ(record.outgoing(), Bytes(0));
}

TEST_F(MemoryRecordTest, WhatIsBeingKilledGivesAllOfItUp) {
  reports(gib(4), Bytes(0));
  takes({RecordEvent::kStopped});
  EXPECT_EQ(record.outgoing(), gib(4));
}

TEST_F(MemoryRecordTest, RoomThatWasGrantedIsItsOwnBeforeAReportShowsIt) {
  reports(gib(1), gib(2));
  record.granted = gib(3);
  EXPECT_EQ(record.occupied(), gib(3));
  EXPECT_EQ(record.returning(), Bytes(0)) << "it returns into that";
}

TEST_F(MemoryRecordTest, WhoFoundTheDeviceFullTriesAgainOnceSomethingIsFreed) {
  reports(gib(1), gib(2));
  takes({RecordEvent::kReturns, RecordEvent::kFull});
  record.full_at = device.freed;
  EXPECT_TRUE(record.absent());
  EXPECT_FALSE(record.may_return());
  ++device.freed;
  EXPECT_TRUE(record.may_return());
}

TEST_F(MemoryRecordTest, WhoseReturnFailedWaitsForItsNextReport) {
  reports(gib(1), gib(2));
  takes({RecordEvent::kReturns, RecordEvent::kFailed});
  EXPECT_FALSE(record.may_return());
  takes({RecordEvent::kReported});
  EXPECT_TRUE(record.may_return());
}

TEST_F(MemoryRecordTest, WhoWaitsForOthersNeedsWhatItWasLetInWith) {
  reports(gib(1), Bytes(0));
  record.demand = gib(5);
  device.requests.push_back({.instance = record.id, .request = 1, .bytes = gib(4), .deadline = Instant()});
  EXPECT_EQ(needed_by(record), gib(1));
  device.requests[0].waits_for_runs = true;
  EXPECT_EQ(needed_by(record), gib(5));
}

TEST_F(MemoryRecordTest, TheLatestOfItsFlowIsTheOneThatReturns) {
  MemoryFunction function;
  MemoryRecord other = record;
  other.id = InstanceId(2);
  takes({RecordEvent::kReady, RecordEvent::kUnused});
  MemoryLedger::must_take(other, RecordEvent::kReady);
  MemoryLedger::must_take(other, RecordEvent::kUnused);
  record.function = other.function = &function;
  function.records = {&record, &other};
  EXPECT_FALSE(is_latest(record)) << "of equal ones the higher id";
  record.last_used = Instant(1s);
  EXPECT_TRUE(is_latest(record));
  other.last_used = Instant(2s);
  MemoryLedger::must_take(other, RecordEvent::kChosen);
  EXPECT_TRUE(is_latest(record)) << "what runs is none of the idle ones";
}

}  // namespace
}  // namespace fairlead
