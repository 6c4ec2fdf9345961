#include "decide/residency/memory_ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/rng.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr GpuId kGpu(1);
constexpr FlowId kFlow(1);
constexpr InstanceId kA(1), kB(2);

class MemoryLedgerTest : public ::testing::Test {
 protected:
  MemoryLedgerTest() { ledger.add_device(kGpu, gib(8)); }
  // One that idles with so much on the device, and so much away.
  MemoryRecord& idle(InstanceId id, Bytes resident, Bytes away = Bytes(0)) {
    MemoryRecord& record = ledger.add(now, id, kFlow, &function, kGpu, resident);
    MemoryLedger::must_take(record, RecordEvent::kReady);
    MemoryLedger::must_take(record, RecordEvent::kUnused);
    MemoryLedger::must_take(record, RecordEvent::kReported);
    record.use = {.held = resident + away, .resident = resident, .away = away, .fixed = Bytes(0)};
    ++record.device->reporting;
    ledger.recount(record);
    return record;
  }
  const MemoryBooks& books() { return ledger.device(kGpu).books; }

  MemoryLedger ledger{5s};
  MemoryFunction function;
  Instant now{};
  ResidencyDecisions out;
};

TEST_F(MemoryLedgerTest, WhatLeavesIsOutgoingUntilItHasLeft) {
  MemoryRecord& a = idle(kA, gib(4));
  ledger.begin_move(now, a, RecordEvent::kLeaves, gib(3), out);
  EXPECT_EQ(books().outgoing, gib(3));
  EXPECT_EQ(books().occupied, gib(4));
  EXPECT_EQ(books().on_the_link, gib(3));
  EXPECT_TRUE(ledger.end_move(now, a, RecordEvent::kLeft, MoveDirection::kOut, MoveOutcome::kDone));
  EXPECT_EQ(books().occupied, gib(1));
  EXPECT_EQ(books().outgoing, Bytes(0));
  EXPECT_EQ(a.use.away, gib(3));
  ledger.check();
}

TEST_F(MemoryLedgerTest, WhatIsOnItsWayBackOccupiesItsRoomAtOnce) {
  MemoryRecord& a = idle(kA, gib(1), gib(3));
  EXPECT_EQ(ledger.device(kGpu).absent_idle.size(), 1u);
  ledger.begin_move(now, a, RecordEvent::kReturns, gib(3), out);
  EXPECT_EQ(books().occupied, gib(4));
  EXPECT_TRUE(ledger.device(kGpu).absent_idle.empty());
  EXPECT_FALSE(ledger.end_move(now, a, RecordEvent::kLeft, MoveDirection::kOut, MoveOutcome::kDone))
      << "it does not leave";
  EXPECT_TRUE(ledger.end_move(now, a, RecordEvent::kReturned, MoveDirection::kIn, MoveOutcome::kDone));
  EXPECT_EQ(a.use.resident, gib(4));
  ledger.check();
}

// A report in between has counted the move already.
TEST_F(MemoryLedgerTest, AReportDuringAMoveIsNotCountedTwice) {
  MemoryRecord& a = idle(kA, gib(4));
  ledger.begin_move(now, a, RecordEvent::kLeaves, gib(3), out);
  a.use = {.held = gib(4), .resident = gib(1), .away = gib(3), .fixed = Bytes(0)};
  ledger.recount(a);
  ledger.end_move(now, a, RecordEvent::kLeft, MoveDirection::kOut, MoveOutcome::kDone);
  EXPECT_EQ(a.use.resident, gib(1));
  EXPECT_EQ(a.use.away, gib(3));
}

TEST_F(MemoryLedgerTest, AMoveHasASecondForEachGbOnTheLink) {
  MemoryRecord& a = idle(kA, Bytes(2'000'000'000));
  ledger.begin_move(now, a, RecordEvent::kLeaves, Bytes(2'000'000'000), out);
  EXPECT_EQ(ledger.next_deadline(), Instant(7s));
  EXPECT_EQ(ledger.overdue(Instant(6999ms)), nullptr);
  EXPECT_EQ(ledger.overdue(Instant(7s)), &a);
  ledger.give_up_move(a);
  EXPECT_TRUE(a.state.unmovable());
  EXPECT_EQ(ledger.next_deadline(), Instant::max());
  EXPECT_EQ(ledger.counters().swap_failures, 1u);
}

TEST_F(MemoryLedgerTest, WhoGoesLeavesNothingBehindAndTellsWhoWaits) {
  MemoryRecord& a = idle(kA, gib(4));
  idle(kB, gib(1));
  MemoryDevice& device = ledger.device(kGpu);
  device.requests.push_back({kB, 7, gib(2), Instant(30s), {kA}});
  device.requests.push_back({kA, 8, gib(2), Instant(30s), {}});
  const std::uint64_t before = device.freed;
  ledger.erase(a);
  EXPECT_EQ(ledger.find(kA), nullptr);
  EXPECT_EQ(books().occupied, gib(1));
  ASSERT_EQ(device.requests.size(), 1u);
  EXPECT_TRUE(device.requests[0].awaited.empty());
  EXPECT_TRUE(device.requests[0].freed);
  EXPECT_EQ(device.freed, before + 1);
  EXPECT_EQ(function.records.size(), 1u);
  ledger.check();
}

TEST_F(MemoryLedgerTest, ADeviceWithRecordsStays) {
  MemoryRecord& a = idle(kA, gib(1));
  EXPECT_FALSE(ledger.remove_device(kGpu));
  ledger.erase(a);
  EXPECT_TRUE(ledger.remove_device(kGpu));
  EXPECT_TRUE(ledger.take_unsettled().empty()) << "nothing follows on one that is not there";
}

TEST_F(MemoryLedgerTest, ADeviceIsUnsettledOnceInTheOrderOfIds) {
  ledger.add_device(GpuId(2), gib(8));
  ledger.unsettle(ledger.device(GpuId(2)));
  ledger.unsettle(ledger.device(kGpu));
  ledger.unsettle(ledger.device(kGpu));
  const auto unsettled = ledger.take_unsettled();
  ASSERT_EQ(unsettled.size(), 2u);
  EXPECT_EQ(unsettled[0]->id, kGpu);
  EXPECT_TRUE(ledger.take_unsettled().empty());
}

TEST(MemoryLedgerDeathTest, WhatTheCallerHasMadeSureOfAbortsAndNamesBoth) {
  MemoryLedger ledger(5s);
  ledger.add_device(kGpu, gib(8));
  MemoryRecord& a = ledger.add(Instant(), kA, kFlow, nullptr, kGpu, gib(1));
  EXPECT_DEATH(MemoryLedger::must_take(a, RecordEvent::kChosen), "instance 1, starting");
}

TEST(MemoryBooks, WhatComesInGoesOutAgain) {
  const auto draw = [](Rng& rng) {
    MemoryBooks books{.occupied = gib(static_cast<std::int64_t>(rng.below(9))), .outgoing = gib(1)};
    books.reserved = books.occupied + gib(static_cast<std::int64_t>(rng.below(9)));
    books.on_the_link = gib(static_cast<std::int64_t>(rng.below(9)));
    books.absent_runs = rng.below(2) != 0, books.absent_idle = rng.below(2) != 0, books.movable = rng.below(2) != 0;
    books.wanted = rng.below(2) != 0, books.may_grow = rng.below(2) != 0;
    return books;
  };
  Rng rng(7);
  MemoryBooks sum;
  std::vector<MemoryBooks> all;
  for (int i = 0; i < 100; ++i) sum += all.emplace_back(draw(rng));
  EXPECT_TRUE(sum.is_sound());
  for (const MemoryBooks& one : all) sum -= one;
  EXPECT_EQ(sum, MemoryBooks());
}

TEST(MemoryBooks, WhatIsMissingIsWhatIsReservedBesideWhatLeaves) {
  const MemoryBooks books{.occupied = gib(7), .reserved = gib(10), .outgoing = gib(1)};
  EXPECT_EQ(books.short_of(gib(8)), gib(1));
  EXPECT_TRUE(books.is_sound());
  EXPECT_FALSE((MemoryBooks{.occupied = gib(2), .reserved = gib(1)}).is_sound());
  EXPECT_FALSE((MemoryBooks{.movable = -1}).is_sound());
}

}  // namespace
}  // namespace fairlead
