// Device memory: lists of events and the actions expected. One GPU of 8 GiB unless said otherwise; functions that need
// 4 GiB each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/core/core_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using testing::CoreTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr FlowId kA(1), kB(2), kC(3);
constexpr MoveDirection kIn = MoveDirection::kIn, kOut = MoveDirection::kOut;

MemoryUse on_device(Bytes bytes, Bytes fixed = Bytes(0)) {
  return {.held = bytes, .resident = bytes, .away = Bytes(0), .fixed = fixed};
}
MemoryUse on_host(Bytes bytes) {
  return {.held = bytes, .resident = Bytes(0), .away = bytes, .fixed = Bytes(0)};
}

class CoreMemory : public CoreTest {
 protected:
  void use_gpu(CoreOptions options, Bytes memory = gib(8)) {
    core_ = std::make_unique<Core>(options, testing::policy_named("mqfq-sticky"));
    core_->add_gpu({.gpu = GpuId(1), .memory = memory});
  }
  void add_with(FlowId flow, Bytes memory) { core_->add_function({.flow = flow, .expected_memory = memory}); }

  // The `instance`-th instance starts for `flow`, answers, reports `bytes` on the device and is idle.
  void warm_up(std::uint64_t instance, FlowId flow, Bytes bytes, Duration at, Bytes fixed = Bytes(0)) {
    arrive(instance, flow, at);
    ready(instance);
    answered(instance);
    report(instance, on_device(bytes, fixed));
    idle(instance);
  }

  // A, B and C of 4 GiB on 8 GiB: A's memory is on the host, B's and C's on the device; all are idle.
  void three_on_room_for_two(CoreOptions options = {.slots_per_gpu = 2}) {
    use_gpu(options);
    for (const FlowId flow : {kA, kB, kC}) add_with(flow, gib(4));
    warm_up(1, kA, gib(4), 1s);
    warm_up(2, kB, gib(4), 2s);
    EXPECT_THAT(arrive(3, kC, 3s), ElementsAre("start instance=3 flow=3 gpu=1", "out instance=1 gib=4"));
    EXPECT_THAT(moved(1, kOut), IsEmpty());
    report(1, on_host(gib(4)));
    ready(3);
    answered(3);
    report(3, on_device(gib(4)));
    idle(3);
  }

  MemoryCounters memory() const { return core_->counters().memory; }
};

// ---- the basic way

TEST_F(CoreMemory, LeastRecentlyUsedMakesRoomAndNoInstanceIsStopped) {
  three_on_room_for_two();
  EXPECT_THAT(arrive(4, kA, 4s), ElementsAre("out instance=2 gib=4", "deliver invocation=4 instance=1"))
      << "the invocation travels while room is made; the gate holds its first kernel";
  EXPECT_THAT(moved(2, kOut), ElementsAre("in instance=1"));
  EXPECT_THAT(moved(1, kIn), IsEmpty());
  EXPECT_EQ(core_->counters().evictions, 0u);
  EXPECT_EQ(core_->counters().host_warm_starts, 1u);
  EXPECT_EQ(core_->counters().cold_starts, 3u);
}

TEST_F(CoreMemory, WhatLeftIsCountedAndWhatWasAskedFor) {
  use_gpu({.slots_per_gpu = 2});
  add_with(kA, gib(4));
  add_with(kB, gib(5));
  warm_up(1, kA, gib(4), 1s);
  EXPECT_THAT(arrive(2, kB, 2s), ElementsAre("start instance=2 flow=2 gpu=1", "out instance=1 gib=1"));
  report(1, on_host(gib(4)));  // one allocation, so all of it left
  moved(1, kOut);
  EXPECT_EQ(memory().bytes_out, std::uint64_t{4} << 30);
  EXPECT_EQ(memory().bytes_asked_out, std::uint64_t{1} << 30);
}

TEST_F(CoreMemory, SwapInIsOrderedBeforeTheDeliveryWhenThereIsRoom) {
  three_on_room_for_two();
  gone(2, 4s);
  EXPECT_THAT(arrive(4, kA), ElementsAre("in instance=1", "deliver invocation=4 instance=1"));
  answered(4, 5s);
  EXPECT_EQ(core_->counters().host_warm_starts, 1u);
}

TEST_F(CoreMemory, StartKindIsWhereTheMemoryWasAtDispatch) {
  three_on_room_for_two();
  arrive(4, kC, 4s);
  EXPECT_THAT(in_full(),
              ElementsAre("deliver invocation=4 instance=3 gpu=1 start=device-warm deadline_ns=64000000000"));
  EXPECT_THAT(answered(4, 5s), ElementsAre("complete invocation=4 success"));
}

TEST_F(CoreMemory, InstancesThatNeverReportAreCountedAndNeverMoved) {
  use_gpu({.slots_per_gpu = 2});
  for (const FlowId flow : {kA, kB, kC}) add_with(flow, gib(4));
  for (std::uint64_t i = 1; i <= 2; ++i) {
    arrive(i, FlowId(i), std::chrono::seconds(i));
    ready(i);
    answered(i);
    idle(i);
  }
  EXPECT_THAT(arrive(3, kC, 3s), ElementsAre("stop instance=1 evicted", "start instance=3 flow=3 gpu=1"));
}

// ---- admission

TEST_F(CoreMemory, InvocationWaitsUntilItFitsBesideWhatRuns) {
  use_gpu({.slots_per_gpu = 2});
  add_with(kA, gib(5));
  add_with(kB, gib(4));
  arrive(1, kA, 1s);
  ready(1);
  report(1, on_device(gib(5)));
  EXPECT_THAT(arrive(2, kB), IsEmpty());
  EXPECT_THAT(answered(1, 2s),
              ElementsAre("complete invocation=1 success", "start instance=2 flow=2 gpu=1", "out instance=1 gib=1"))
      << "and then only as much leaves as is needed";
}

TEST_F(CoreMemory, WhatCannotMoveCostsTheInstanceWhenItIsInTheWay) {
  for (const auto& [size, stops] : {std::pair(gib(6), false), std::pair(gib(7), true)}) {
    use_gpu({.slots_per_gpu = 2});
    add_with(kA, gib(4));
    add_with(kB, size);
    warm_up(1, kA, gib(4), 1s, /*fixed=*/gib(2));
    if (stops) {
      EXPECT_THAT(arrive(2, kB, 2s), ElementsAre("stop instance=1 evicted", "start instance=2 flow=2 gpu=1"));
    } else {
      EXPECT_THAT(arrive(2, kB, 2s), ElementsAre("start instance=2 flow=2 gpu=1", "out instance=1 gib=2"));
    }
  }
}

TEST_F(CoreMemory, FootprintIsLearntFromReports) {
  use_gpu({.slots_per_gpu = 2});
  add(kA);
  add_with(kB, gib(4));
  arrive(1, kA, 1s);
  ready(1);
  report(1, on_device(gib(6)));
  EXPECT_THAT(arrive(2, kB), IsEmpty());
  EXPECT_THAT(answered(1, 2s),
              ElementsAre("complete invocation=1 success", "start instance=2 flow=2 gpu=1", "out instance=1 gib=2"));
  EXPECT_EQ(core_->instances()[0].memory, on_device(gib(6)));
  EXPECT_EQ(core_->gpus()[0].memory_admitted, gib(4));
}

TEST_F(CoreMemory, PolicyNoneStopsInstancesInsteadOfMovingMemory) {
  use_gpu({.slots_per_gpu = 2, .memory_policy = MemoryPolicy::kNone});
  for (const FlowId flow : {kA, kB, kC}) add_with(flow, gib(4));
  warm_up(1, kA, gib(4), 1s);
  warm_up(2, kB, gib(4), 2s);
  EXPECT_THAT(arrive(3, kC, 3s), ElementsAre("stop instance=1 evicted", "start instance=3 flow=3 gpu=1"));
}

TEST_F(CoreMemory, ChosenWhileItsMemoryLeavesGetsItBackAfterwards) {
  use_gpu({.slots_per_gpu = 2});
  for (const FlowId flow : {kA, kB, kC}) add_with(flow, gib(4));
  warm_up(1, kA, gib(4), 1s);
  warm_up(2, kB, gib(4), 2s);
  EXPECT_THAT(arrive(3, kC, 3s), ElementsAre("start instance=3 flow=3 gpu=1", "out instance=1 gib=4"));
  EXPECT_THAT(arrive(4, kA), ElementsAre("out instance=2 gib=4", "deliver invocation=4 instance=1"));
  EXPECT_THAT(moved(1, kOut), IsEmpty());
  EXPECT_THAT(moved(2, kOut), ElementsAre("in instance=1"));
  EXPECT_EQ(core_->counters().host_warm_starts, 1u);
}

// ---- ahead of use

TEST_F(CoreMemory, MemoryOfAnInactiveFlowLeavesForOneThatIsAboutToRun) {
  three_on_room_for_two({.slots_per_gpu = 1});
  arrive(4, kC, 4s);
  EXPECT_THAT(wake(5s), IsEmpty()) << "B is inactive from here on, but nobody needs its room";
  EXPECT_THAT(arrive(5, kA), ElementsAre("out instance=2 gib=4"));
  EXPECT_THAT(moved(2, kOut), ElementsAre("in instance=1"));
  moved(1, kIn);
  report(1, on_device(gib(4)));
  EXPECT_THAT(answered(4, 6s), ElementsAre("complete invocation=4 success", "deliver invocation=5 instance=1"));
  EXPECT_EQ(memory().prefetches_in_time, 1u);
  EXPECT_EQ(core_->counters().host_warm_starts, 0u);
}

TEST_F(CoreMemory, MemoryOfAnActiveFlowStaysUntilAnInvocationIsChosen) {
  three_on_room_for_two({.slots_per_gpu = 1});
  arrive(4, kC, 3s);
  EXPECT_THAT(arrive(5, kA), IsEmpty()) << "B is within its TTL";
  EXPECT_THAT(answered(4, 4s),
              ElementsAre("complete invocation=4 success", "out instance=2 gib=4", "deliver invocation=5 instance=1"));
}

TEST_F(CoreMemory, PolicyPrefetchBringsBackIntoFreeRoomOnly) {
  three_on_room_for_two({.slots_per_gpu = 1, .memory_policy = MemoryPolicy::kPrefetch});
  arrive(4, kC, 4s);
  wake(5s);
  EXPECT_THAT(arrive(5, kA), IsEmpty());
  EXPECT_THAT(gone(2), ElementsAre("in instance=1"));
  EXPECT_THAT(answered(4, 6s), ElementsAre("complete invocation=4 success", "deliver invocation=5 instance=1"));
  EXPECT_EQ(memory().prefetches_late, 1u) << "the move is not over";
  EXPECT_EQ(core_->counters().host_warm_starts, 1u);
}

// A is called every 2 s, B and C once. C has driven out A.
class CoreMemoryAheadOfCalls : public CoreMemory {
 protected:
  void frequent_a_is_away(CoreOptions options) {
    use_gpu(options);
    for (const FlowId flow : {kA, kB, kC}) add_with(flow, gib(4));
    warm_up(1, kA, gib(4), 1s);
    arrive(4, kA, 3s);
    answered(4);
    idle(1);
    warm_up(2, kB, gib(4), 4s);
    EXPECT_THAT(arrive(3, kC, 5s), ElementsAre("start instance=3 flow=3 gpu=1", "out instance=1 gib=4"));
    moved(1, kOut);
    report(1, on_host(gib(4)));
    ready(3);
  }
};

TEST_F(CoreMemoryAheadOfCalls, MemoryReturnsIntoFreeRoomBeforeTheCall) {
  frequent_a_is_away({.slots_per_gpu = 2, .memory_policy = MemoryPolicy::kPrefetch});
  EXPECT_THAT(answered(3, 6s), ElementsAre("complete invocation=3 success")) << "no room is free";
  idle(3);
  EXPECT_THAT(gone(2, 7s), ElementsAre("in instance=1"));
  moved(1, kIn);
  arrive(5, kA, 8s);
  EXPECT_EQ(memory().prefetches_in_time, 1u);
  EXPECT_EQ(core_->counters().host_warm_starts, 0u);
}

TEST_F(CoreMemoryAheadOfCalls, MemoryReturnsInThePlaceOfWhatIsCalledLessOften) {
  frequent_a_is_away({.slots_per_gpu = 2});
  EXPECT_THAT(report(3, on_device(gib(4)), 6s), ElementsAre("out instance=2 gib=4")) << "C runs";
  answered(3);
  idle(3);
  EXPECT_THAT(moved(2, kOut), ElementsAre("in instance=1"));
  moved(1, kIn);
  EXPECT_THAT(arrive(5, kA, 8s), ElementsAre("deliver invocation=5 instance=1"));
  EXPECT_EQ(memory().prefetches_in_time, 1u);
  EXPECT_EQ(core_->counters().host_warm_starts, 0u);
  EXPECT_THAT(answered(5), ElementsAre("complete invocation=5 success")) << "B, called once, does not come back for it";
}

TEST_F(CoreMemoryAheadOfCalls, WhatIsCalledAboutAsOftenStays) {
  frequent_a_is_away({.slots_per_gpu = 2});
  arrive(5, kB, 6s);
  answered(5);
  idle(2);
  report(3, on_device(gib(4)));
  EXPECT_THAT(answered(3, 7s), ElementsAre("complete invocation=3 success", "out instance=3 gib=4"))
      << "B was used before C, and is expected every 2 s as A is";
}

TEST_F(CoreMemoryAheadOfCalls, NothingReturnsWhileSomethingMovesOrWaitsForRoom) {
  frequent_a_is_away({.slots_per_gpu = 2});
  arrive(5, kB, 6s);
  EXPECT_THAT(needs_room(2, 7, gib(4)), IsEmpty()) << "until C is done";
  EXPECT_THAT(report(3, on_device(gib(4))), IsEmpty());
  EXPECT_THAT(answered(3, 7s), ElementsAre("complete invocation=3 success", "out instance=3 gib=4"));
  EXPECT_THAT(moved(3, kOut), ElementsAre("room instance=2 request=7 granted")) << "and A's does not return into it";
}

// ---- requests for room

TEST_F(CoreMemory, RoomIsMadeOfIdleMemoryAndGrantedWhenItIsThere) {
  use_gpu({.slots_per_gpu = 2});
  add_with(kA, gib(4));
  add(kB);
  warm_up(1, kA, gib(4), 1s);
  arrive(2, kB, 2s);
  ready(2);
  EXPECT_THAT(needs_room(2, 7, gib(5)), ElementsAre("out instance=1 gib=4"));
  EXPECT_THAT(needs_room(2, 7, gib(5)), IsEmpty()) << "the same request";
  EXPECT_THAT(moved(1, kOut), ElementsAre("room instance=2 request=7 granted"));
  EXPECT_EQ(memory().room_granted, 1u);
}

// Whose memory made the room was chosen meanwhile: it waits, or the allocation would find the device full after all.
TEST_F(CoreMemory, RoomThatIsGrantedIsNotTakenBackBeforeItIsUsed) {
  use_gpu({.slots_per_gpu = 2});
  add_with(kA, gib(4));
  add_with(kB, gib(4));
  warm_up(1, kA, gib(4), 1s);
  warm_up(2, kB, gib(4), 2s);
  EXPECT_THAT(arrive(3, kB, 3s), ElementsAre("deliver invocation=3 instance=2"));
  EXPECT_THAT(needs_room(2, 7, gib(4)), ElementsAre("out instance=1 gib=4"));
  EXPECT_THAT(arrive(4, kA, 4s), ElementsAre("deliver invocation=4 instance=1"));
  EXPECT_THAT(moved(1, kOut), ElementsAre("room instance=2 request=7 granted"));
  report(1, on_host(gib(4)));
  EXPECT_THAT(report(2, on_device(gib(4))), IsEmpty()) << "seen before it allocated";
  EXPECT_THAT(report(2, on_device(gib(8))), IsEmpty());
  EXPECT_THAT(report(2, on_device(gib(4))), ElementsAre("in instance=1")) << "used, and given back";
}

// Its connection was cut, so it returns by itself and asks like an allocation; the node may have it return as well.
TEST_F(CoreMemory, RoomThatIsGrantedIsWhereItsOwnMemoryReturns) {
  three_on_room_for_two();
  EXPECT_THAT(arrive(4, kA, 4s), ElementsAre("out instance=2 gib=4", "deliver invocation=4 instance=1"));
  EXPECT_THAT(needs_room(1, 7, gib(4)), IsEmpty());
  EXPECT_THAT(moved(2, kOut), ElementsAre("room instance=1 request=7 granted", "in instance=1"));
}

// A GiB of contexts, say.
TEST_F(CoreMemory, WhatNoInstanceReportsLeavesLessRoom) {
  for (const bool seen : {false, true}) {
    use_gpu({.slots_per_gpu = 2});
    add_with(kA, gib(3));
    add_with(kB, gib(3));
    add_with(kC, gib(2));
    warm_up(1, kA, gib(3), 1s);
    warm_up(2, kB, gib(3), 2s);
    for (int i = 0; seen && i < 5; ++i) EXPECT_THAT(device_used(1, gib(7)), IsEmpty());
    if (seen) {
      EXPECT_THAT(arrive(3, kC, 3s), ElementsAre("start instance=3 flow=3 gpu=1", "out instance=1 gib=1"));
    } else {
      EXPECT_THAT(arrive(3, kC, 3s), ElementsAre("start instance=3 flow=3 gpu=1"));
    }
  }
}

// 2 GiB beside 5 would fit on 8, but not beside 2 GiB of contexts; 7 GiB would fit nowhere, so they run alone.
TEST_F(CoreMemory, WhatNoInstanceReportsIsNotAdmittedBeside) {
  use_gpu({.slots_per_gpu = 2});
  add_with(kA, gib(5));
  add_with(kB, gib(2));
  add_with(kC, gib(7));
  for (int i = 0; i < 5; ++i) device_used(1, gib(2));
  EXPECT_THAT(arrive(1, kA, 1s), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(arrive(2, kB), IsEmpty());
  ready(1);
  EXPECT_THAT(answered(1, 2s),
              ElementsAre("complete invocation=1 success", "stop instance=1 evicted", "start instance=2 flow=2 gpu=1"));
  ready(2);
  EXPECT_THAT(arrive(3, kC, 3s), IsEmpty());
  EXPECT_THAT(answered(2),
              ElementsAre("complete invocation=2 success", "stop instance=2 evicted", "start instance=3 flow=3 gpu=1"));
}

TEST_F(CoreMemory, MemoryReturnsWhenWhatNobodyReportedIsGone) {
  three_on_room_for_two();
  EXPECT_THAT(arrive(4, kA, 4s), ElementsAre("out instance=2 gib=4", "deliver invocation=4 instance=1"));
  for (int i = 0; i < 5; ++i) EXPECT_THAT(device_used(1, gib(10)), IsEmpty()) << "it is not known how much has left";
  EXPECT_THAT(moved(2, kOut, MoveOutcome::kBusy), ElementsAre("out instance=3 gib=4"));
  EXPECT_THAT(moved(3, kOut, MoveOutcome::kBusy), ElementsAre("stop instance=2 evicted")) << "nothing else helps";
  EXPECT_THAT(gone(2), ElementsAre("in instance=1"));
}

TEST_F(CoreMemory, RoomThatNothingCanMakeIsRefusedAtOnceAndNothingMoves) {
  use_gpu({.slots_per_gpu = 2});
  add_with(kA, gib(4));
  add(kB);
  arrive(1, kB, 1s);
  ready(1);
  report(1, on_device(gib(1)));
  EXPECT_THAT(needs_room(1, 1, gib(8)), ElementsAre("room instance=1 request=1 refused")) << "8 GiB beside its own";
  answered(1, 2s);
  idle(1);
  warm_up(2, kA, gib(4), 3s);
  arrive(3, kB, 4s);
  EXPECT_THAT(needs_room(1, 2, gib(9)), ElementsAre("room instance=1 request=2 refused")) << "9 GiB on 8";
  EXPECT_EQ(memory().room_refused, 2u);
}

TEST_F(CoreMemory, RoomThatAnotherHoldsWhileItRunsIsWaitedFor) {
  use_gpu({.slots_per_gpu = 3});
  add_with(kA, gib(6));
  add(kB);
  add_with(kC, gib(1));
  arrive(1, kA, 1s);
  arrive(2, kB);
  ready(1);
  ready(2);
  report(1, on_device(gib(6)));
  EXPECT_THAT(needs_room(2, 1, gib(4)), IsEmpty());
  EXPECT_THAT(arrive(3, kC, 2s), IsEmpty()) << "1 GiB would fit beside A, but not beside A and what B waits for";
  EXPECT_THAT(answered(1, 3s),
              ElementsAre("complete invocation=1 success", "start instance=3 flow=3 gpu=1", "out instance=1 gib=4"));
  EXPECT_THAT(moved(1, kOut), ElementsAre("room instance=2 request=1 granted"));
}

// The neighbour runs longer than anybody waits for room.
TEST_F(CoreMemory, RefusedBesideAnotherItGetsTheRoomNextTime) {
  use_gpu({.slots_per_gpu = 2});
  add_with(kA, gib(6));
  add(kB);
  arrive(1, kA, 1s);
  arrive(2, kB);
  ready(1);
  ready(2);
  EXPECT_THAT(needs_room(2, 1, gib(4)), IsEmpty());
  EXPECT_THAT(wake(31s), ElementsAre("room instance=2 request=1 refused"));
  answered(2, 32s);
  idle(2);
  EXPECT_THAT(arrive(3, kB, 33s), IsEmpty()) << "it is expected to need 4 GiB now, and 2 are left";
  report(1, on_device(gib(6)));
  EXPECT_THAT(answered(1, 34s),
              ElementsAre("complete invocation=1 success", "out instance=1 gib=2", "deliver invocation=3 instance=2"));
}

// Both were let in with less than they need.
TEST_F(CoreMemory, OfTwoThatWaitForEachOthersRoomTheLaterIsRefused) {
  use_gpu({.slots_per_gpu = 2});
  add(kA);
  add(kB);
  arrive(1, kA, 1s);
  arrive(2, kB, 2s);
  ready(1);
  ready(2);
  report(1, on_device(gib(4)));
  report(2, on_device(gib(4)));
  EXPECT_THAT(needs_room(2, 1, gib(2)), IsEmpty());
  EXPECT_THAT(needs_room(1, 2, gib(2)), ElementsAre("room instance=2 request=1 refused"));
  EXPECT_THAT(answered(2, 3s), ElementsAre("complete invocation=2 success", "out instance=2 gib=2"));
  EXPECT_THAT(moved(2, kOut), ElementsAre("room instance=1 request=2 granted"));
}

// ---- starts that find the device full

class CoreMemoryOfStarts : public CoreMemory {
 protected:
  // What A and B need is not known; both are let in, and each has 4 GiB of 8.
  void two_starts_fill_the_device(CoreOptions options) {
    use_gpu(options);
    for (const FlowId flow : {kA, kB, kC}) add(flow);
    arrive(1, kA, 1s);
    arrive(2, kB, 2s);
    report(1, on_device(gib(4)));
    report(2, on_device(gib(4)));
  }
};

TEST_F(CoreMemoryOfStarts, TheLaterGivesWayFailsNothingAndStartsAgain) {
  for (const std::size_t ahead : {0u, 4u}) {
    two_starts_fill_the_device({.slots_per_gpu = 2, .starts_per_gpu = ahead});
    EXPECT_THAT(needs_room(1, 7, gib(2)), IsEmpty()) << "until B has started and its memory may leave";
    EXPECT_THAT(needs_room(2, 8, gib(2)), ElementsAre("stop instance=2 no_room")) << "each waits for the other";
    EXPECT_THAT(gone(2, 3s), ElementsAre("room instance=1 request=7 granted")) << "6 GiB and 6 are not let in together";
    EXPECT_EQ(core_->flow(kB).virtual_time, Duration(0)) << "it is not charged";
    EXPECT_EQ(core_->flow(kB).queued, 1u);
    EXPECT_EQ(core_->expected_memory(kB), gib(6));
    report(1, on_device(gib(6)));
    EXPECT_THAT(ready(1, 4s), Contains(HasSubstr("deliver invocation=1 instance=1")));
    EXPECT_THAT(answered(1, 5s), Contains(HasSubstr("start instance=3 flow=2 gpu=1")));
    EXPECT_EQ(core_->counters().failed, 0u);
    EXPECT_EQ(memory().starts_gave_way, 1u);
  }
}

TEST_F(CoreMemoryOfStarts, RoomThatAnInvocationHoldsIsWaitedForUntilItIsAnswered) {
  use_gpu({.slots_per_gpu = 1, .starts_per_gpu = 4});
  add_with(kA, gib(6));
  add(kB);
  warm_up(1, kA, gib(6), 1s);
  arrive(2, kA, 2s);
  arrive(3, kB);
  EXPECT_THAT(needs_room(2, 7, gib(4)), IsEmpty());
  EXPECT_THAT(answered(2, 10s), ElementsAre("complete invocation=2 success", "out instance=1 gib=4"));
  EXPECT_THAT(moved(1, kOut), ElementsAre("room instance=2 request=7 granted"));
}

TEST_F(CoreMemoryOfStarts, NobodyIsWaitedForLongerThanTheDeadline) {
  use_gpu({.slots_per_gpu = 1, .starts_per_gpu = 4});
  add_with(kA, gib(6));
  add(kB);
  warm_up(1, kA, gib(6), 1s);
  arrive(2, kA, 2s);
  arrive(3, kB);
  EXPECT_THAT(needs_room(2, 7, gib(4)), IsEmpty());
  EXPECT_THAT(wake(32s), ElementsAre("stop instance=2 no_room"));
  EXPECT_THAT(gone(2), IsEmpty()) << "4 GiB do not fit beside the 6 that run";
  EXPECT_THAT(answered(2, 40s),
              ElementsAre("complete invocation=2 success", "start instance=3 flow=2 gpu=1", "out instance=1 gib=2"));
}

// The books are wrong: something that reports nothing fills the device.
TEST_F(CoreMemoryOfStarts, AfterThreeThatGaveWayTheFourthIsAloneAndItsEndIsFinal) {
  use_gpu({.slots_per_gpu = 1, .starts_per_gpu = 4, .room_deadline = 3s});
  add_with(kA, gib(1));
  add(kB);
  warm_up(1, kA, gib(1), 1s);
  arrive(2, kA, 2s);
  arrive(3, kB);
  Duration at = 2s;
  for (std::uint64_t instance = 2; instance <= 4; ++instance) {
    EXPECT_THAT(needs_room(instance, 10 * instance, gib(4)), Contains(HasSubstr("granted")))
        << "by the books, try again";
    EXPECT_THAT(needs_room(instance, 10 * instance + 1, gib(4)), IsEmpty());
    EXPECT_THAT(wake(at += 4s), Contains(HasSubstr("no_room")));
    gone(instance);
  }
  EXPECT_EQ(core_->gpus().front().starting_ahead, 0u) << "A runs";
  EXPECT_THAT(answered(2, at += 1s), Contains(HasSubstr("start instance=5 flow=2")));
  moved(1, kOut);
  report(1, on_host(gib(1)));
  needs_room(5, 50, gib(4));
  EXPECT_THAT(needs_room(5, 51, gib(4)), ElementsAre("room instance=5 request=51 refused"));
  EXPECT_THAT(gone(5), Contains(HasSubstr("complete invocation=3 start_failed")));
}

TEST_F(CoreMemoryOfStarts, WhatFitsNoDeviceIsRefusedAtOnce) {
  two_starts_fill_the_device({.slots_per_gpu = 2, .starts_per_gpu = 4});
  EXPECT_THAT(needs_room(1, 7, gib(5)), ElementsAre("room instance=1 request=7 refused")) << "5 GiB beside its own 4";
  EXPECT_THAT(gone(1), Contains(HasSubstr("complete invocation=1 start_failed")));
}

TEST_F(CoreMemory, IdleInstanceIsStoppedWhenItsMemoryDoesNotLeave) {
  use_gpu({.slots_per_gpu = 2});
  add_with(kA, gib(4));
  add(kB);
  warm_up(1, kA, gib(4), 1s);
  arrive(2, kB, 2s);
  ready(2);
  needs_room(2, 7, gib(4));
  EXPECT_THAT(moved(1, kOut, MoveOutcome::kBusy), ElementsAre("stop instance=1 evicted"));
  EXPECT_THAT(gone(1, 3s), ElementsAre("room instance=2 request=7 granted"));
}

// 5 s, and 4.3 s for 4 GiB.
TEST_F(CoreMemory, RequestEndsThoughNobodyElseSpeaks) {
  use_gpu({.slots_per_gpu = 2});
  add_with(kA, gib(4));
  add(kB);
  warm_up(1, kA, gib(4), 1s);
  arrive(2, kB, 2s);
  ready(2);
  needs_room(2, 7, gib(4));
  EXPECT_THAT(wake(11s), IsEmpty());
  EXPECT_THAT(wake(11300ms), ElementsAre("stop instance=1 evicted")) << "its move was not answered";
  EXPECT_THAT(wake(16300ms), ElementsAre("room instance=2 request=7 granted")) << "try again: the dead may be gone";
}

TEST_F(CoreMemory, RequestIsAnsweredAtItsDeadline) {
  use_gpu({.slots_per_gpu = 2, .room_deadline = 3s});
  add_with(kA, gib(4));
  add(kB);
  warm_up(1, kA, gib(4), 1s);
  arrive(2, kB, 2s);
  ready(2);
  needs_room(2, 7, gib(5));
  EXPECT_THAT(wake(5s), ElementsAre("room instance=2 request=7 refused"));
}

TEST_F(CoreMemory, TwoRequestsShareAMoveThatIsLargeEnough) {
  use_gpu({.slots_per_gpu = 2});
  add_with(kA, gib(8));
  add(kB);
  add(kC);
  warm_up(1, kA, gib(8), 1s);
  arrive(2, kB, 2s);
  arrive(3, kC);
  ready(2);
  ready(3);
  EXPECT_THAT(needs_room(2, 1, gib(8)), ElementsAre("out instance=1 gib=8"));
  EXPECT_THAT(needs_room(3, 2, gib(2)), IsEmpty()) << "what leaves is promised, but it is better to wait than to fail";
  EXPECT_THAT(moved(1, kOut), ElementsAre("room instance=2 request=1 granted", "room instance=3 request=2 granted"));
}

TEST_F(CoreMemory, RoomThatCameFreeMeanwhileIsGrantedOnce) {
  use_gpu({.slots_per_gpu = 2});
  add(kB);
  arrive(1, kB, 1s);
  ready(1);
  EXPECT_THAT(needs_room(1, 1, gib(4)), ElementsAre("room instance=1 request=1 granted")) << "by the books, try again";
  EXPECT_THAT(needs_room(1, 2, gib(4)), ElementsAre("room instance=1 request=2 refused")) << "the books were wrong";
}

TEST_F(CoreMemory, MemoryThatReturnsAheadOfUseLeavesAgainForARequest) {
  three_on_room_for_two();
  arrive(4, kB, 4s);
  gone(3);
  EXPECT_THAT(wants_memory(1), ElementsAre("in instance=1"));
  EXPECT_THAT(needs_room(2, 1, gib(2)), IsEmpty()) << "what could leave is on its way in";
  EXPECT_THAT(moved(1, kIn), ElementsAre("out instance=1 gib=2"));
  EXPECT_THAT(moved(1, kOut), ElementsAre("room instance=2 request=1 granted"));
}

TEST_F(CoreMemory, PolicyNoneMakesRoomByStopping) {
  use_gpu({.slots_per_gpu = 2, .memory_policy = MemoryPolicy::kNone});
  add_with(kA, gib(4));
  add(kB);
  warm_up(1, kA, gib(4), 1s);
  arrive(2, kB, 2s);
  ready(2);
  EXPECT_THAT(needs_room(2, 7, gib(5)), ElementsAre("stop instance=1 evicted"));
  EXPECT_THAT(gone(1), ElementsAre("room instance=2 request=7 granted"));
}

// ---- moves that do not end well

TEST_F(CoreMemory, AnotherMakesRoomWhenOneIsBusy) {
  three_on_room_for_two();
  arrive(4, kA, 4s);
  EXPECT_THAT(moved(2, kOut, MoveOutcome::kBusy), ElementsAre("out instance=3 gib=4"));
  EXPECT_THAT(moved(3, kOut), ElementsAre("in instance=1"));
  EXPECT_EQ(memory().swap_failures, 1u);
}

TEST_F(CoreMemory, MovesThatAreNotAnsweredBlockNobodyForLong) {
  three_on_room_for_two();
  arrive(4, kA, 4s);
  EXPECT_THAT(wake(13300ms), ElementsAre("out instance=3 gib=4"));
  EXPECT_THAT(wake(22600ms), ElementsAre("stop instance=2 evicted")) << "nothing can move, and an invocation waits";
  EXPECT_THAT(gone(2), ElementsAre("in instance=1"));
  EXPECT_THAT(moved(2, kOut), IsEmpty()) << "too late";
}

TEST_F(CoreMemory, SwapInThatFoundTheDeviceFullIsTriedAgainWhenThereIsRoom) {
  three_on_room_for_two();
  gone(2, 4s);
  EXPECT_THAT(arrive(4, kA), ElementsAre("in instance=1", "deliver invocation=4 instance=1"));
  EXPECT_THAT(moved(1, kIn, MoveOutcome::kNoRoom), ElementsAre("out instance=3 gib=4"))
      << "the device is fuller than the books say";
  EXPECT_THAT(moved(3, kOut), ElementsAre("in instance=1"));
}

TEST_F(CoreMemory, RoomForMemoryThatReturnsIsNotCountedTwice) {
  three_on_room_for_two();
  arrive(4, kC, 4s);
  gone(2);
  EXPECT_THAT(arrive(5, kA), ElementsAre("in instance=1", "deliver invocation=5 instance=1"));
  arrive(6, kB);
  EXPECT_THAT(needs_room(1, 1, gib(4)), ElementsAre("room instance=1 request=1 granted")) << "4 GiB beside its own 4";
  EXPECT_THAT(needs_room(1, 2, gib(4)), IsEmpty()) << "nothing is idle before C has answered";
  EXPECT_EQ(core_->expected_memory(kA), gib(4)) << "it needs no more than it did";
}

TEST_F(CoreMemory, FailedSwapInIsTriedAgainWhenTheInstanceAsks) {
  three_on_room_for_two();
  gone(2, 4s);
  arrive(4, kA);
  EXPECT_THAT(moved(1, kIn, MoveOutcome::kFailed), IsEmpty());
  EXPECT_THAT(wants_memory(1), ElementsAre("in instance=1"));
}

TEST_F(CoreMemory, ThreadThatWaitsIsBelievedBeforeTheBooks) {
  three_on_room_for_two();
  arrive(4, kC, 4s);
  EXPECT_THAT(wants_memory(3), ElementsAre("in instance=3")) << "a move out may have gone on after its deadline";
  EXPECT_THAT(moved(3, kIn, MoveOutcome::kNothing), IsEmpty());
  EXPECT_EQ(memory().swap_failures, 0u);
}

TEST_F(CoreMemory, MemoryOfAStoppedInstanceCountsUntilItIsGone) {
  three_on_room_for_two();
  update({.flow = kB, .expected_memory = gib(4)}, 4s);  // stops instance 2
  EXPECT_THAT(arrive(4, kA), ElementsAre("deliver invocation=4 instance=1"));
  EXPECT_THAT(gone(2), ElementsAre("in instance=1"));
}

TEST_F(CoreMemory, LateUnknownAndUnaskedReportsAreIgnored) {
  three_on_room_for_two();
  EXPECT_THAT(report(9, on_device(gib(1))), IsEmpty());
  EXPECT_THAT(moved(9, kOut), IsEmpty());
  EXPECT_THAT(moved(2, kOut), IsEmpty());
  EXPECT_THAT(needs_room(9, 1, gib(1)), IsEmpty());
  EXPECT_THAT(wants_memory(9), IsEmpty());
  gone(2, 4s);
  EXPECT_THAT(report(2, on_device(gib(4))), IsEmpty());
  EXPECT_EQ(memory().swap_failures, 0u);
}

// ---- threads of idle instances

TEST_F(CoreMemory, IdleInstanceGetsItsMemoryBackWhenOthersNeedTheirsNoMore) {
  three_on_room_for_two();
  EXPECT_THAT(wants_memory(1, 3500ms), IsEmpty()) << "B and C are within their TTL";
  EXPECT_THAT(wake(6s), ElementsAre("out instance=2 gib=4"));
  EXPECT_THAT(moved(2, kOut), ElementsAre("in instance=1"));
  moved(1, kIn);
  report(1, on_device(gib(4)));
  report(2, on_host(gib(4)));
  EXPECT_THAT(wants_memory(2), ElementsAre("out instance=3 gib=4"));
  EXPECT_THAT(moved(3, kOut), ElementsAre("in instance=2"));
  moved(2, kIn);
  EXPECT_THAT(wants_memory(3), IsEmpty()) << "those who came back for the same reason are not pushed out in turn";
}

// ---- whom to stop: restart costs

TEST_F(CoreMemory, CostAwareEvictionKeepsTheInstanceThatIsDearToRestart) {
  for (const auto& [kind, victim] :
       {std::pair(EvictionKind::kLru, "stop instance=1 evicted"), {EvictionKind::kCost, "stop instance=2 evicted"}}) {
    use({.slots_per_gpu = 1, .instances_per_gpu = 2, .eviction = kind});
    for (const FlowId flow : {kA, kB, kC}) add(flow);
    arrive(1, kA, 1s);
    run_to_idle(1, 1, 13s);  // starts in 12 s, is called every minute
    arrive(2, kA, 61s);
    answered(2);
    idle(1);
    arrive(3, kB, 62s);
    run_to_idle(2, 3, 62100ms);  // starts in 0.1 s, is called every two seconds
    arrive(4, kB, 64s);
    answered(4);
    idle(2);
    EXPECT_THAT(arrive(5, kC, 65s), ElementsAre(victim, "start instance=3 flow=3 gpu=1"));
  }
}

// A was used first and is expected back (its TTL is twice its gap, 60 s); B, called once, has passed its TTL of 2 s.
TEST_F(CoreMemory, InactiveFirstEvictionKeepsTheInstanceOfAFlowWithinItsTtl) {
  for (const auto& [kind, victim] : {std::pair(EvictionKind::kLru, "stop instance=1 evicted"),
                                     {EvictionKind::kInactiveFirst, "stop instance=2 evicted"}}) {
    use({.slots_per_gpu = 1, .instances_per_gpu = 2, .eviction = kind});
    for (const FlowId flow : {kA, kB, kC}) add(flow);
    arrive(1, kA, 1s);
    run_to_idle(1, 1, 2s);
    arrive(2, kA, 31s);
    answered(2);
    idle(1);
    arrive(3, kB, 40s);
    run_to_idle(2, 3, 41s);
    wake(50s);
    EXPECT_THAT(arrive(4, kC, 51s), ElementsAre(victim, "start instance=3 flow=3 gpu=1"));
  }
}

// ---- what is away counts as set-up

// 8 GiB take 0.8 s out and 0.8 s in. B has waited with two calls, A has one more: A's memory is there.
TEST_F(CoreMemory, WhoseMemoryIsOnTheDeviceGoesOnWhileAnothersWouldHaveToMove) {
  core_ = std::make_unique<Core>(CoreOptions{.slots_per_gpu = 1}, testing::policy_named("mqfq-setup"));
  core_->add_gpu({.gpu = GpuId(1), .memory = gib(8)});
  for (const FlowId flow : {kA, kB}) add_with(flow, gib(8));
  arrive(1, kA, 1s);
  ready(1, 2s);
  answered(1, 3s);
  report(1, on_device(gib(8)));
  idle(1);
  EXPECT_THAT(arrive(2, kB, 4s), ElementsAre("start instance=2 flow=2 gpu=1", "out instance=1 gib=8"));
  moved(1, kOut);
  report(1, on_host(gib(8)));
  ready(2, 5s);
  answered(2, 6s);
  report(2, on_device(gib(8)));
  idle(2);
  EXPECT_THAT(arrive(3, kA, 7s), ElementsAre("out instance=2 gib=8", "deliver invocation=3 instance=1"));
  moved(2, kOut);
  report(2, on_host(gib(8)));
  moved(1, kIn);
  report(1, on_device(gib(8)));
  arrive(4, kB, 8s);
  arrive(5, kB, 8s);
  arrive(6, kA, 8s);
  answered(3, 9s);
  EXPECT_THAT(idle(1), ElementsAre("deliver invocation=6 instance=1"));
  EXPECT_THAT(answered(6, 10s), Contains(HasSubstr("out instance=1"))) << "A has no more calls";
}

}  // namespace
}  // namespace fairlead
