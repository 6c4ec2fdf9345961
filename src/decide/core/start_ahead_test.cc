// Instances that start without a slot, before what they will run is chosen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/core/core_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::CoreTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr FlowId kA(1), kB(2), kC(3);

class StartAhead : public CoreTest {
 protected:
  // One GPU, one slot.
  void use_ahead(CoreOptions options) {
    if (options.starts_per_gpu == 0) options.starts_per_gpu = 4;
    options.slots_per_gpu = 1;
    use(options);
    for (const FlowId flow : {kA, kB, kC}) add(flow);
  }

  // Instance 1 of A runs invocation 1.
  void occupy_the_slot() {
    EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
    EXPECT_THAT(ready(1), ElementsAre("deliver invocation=1 instance=1"));
  }

  std::size_t starting() const { return core_->gpus().front().starting_ahead; }
  std::size_t slots() const { return core_->gpus().front().slots_in_use; }
};

TEST_F(StartAhead, AStartHoldsNoSlotAndWarmWorkRunsMeanwhile) {
  use_ahead({});
  occupy_the_slot();
  answered(1, 1s);
  idle(1, 1s);
  EXPECT_THAT(arrive(2, kB, 2s), ElementsAre("start instance=2 flow=2 gpu=1"));
  EXPECT_EQ(slots(), 0u);
  EXPECT_THAT(arrive(3, kA, 2s), ElementsAre("deliver invocation=3 instance=1"));
  EXPECT_THAT(ready(2, 11s), IsEmpty()) << "the slot is A's";
  EXPECT_THAT(answered(3, 12s), ElementsAre("complete invocation=3 success", "deliver invocation=2 instance=2"));
  EXPECT_THAT(answered(2, 13s), ElementsAre("complete invocation=2 success"));
  EXPECT_THAT(in_full(), ElementsAre("complete invocation=2 flow=2 outcome=success start=cold queue_ns=10000000000 "
                                     "start_ns=0 service_ns=1000000000"));
  EXPECT_EQ(std::get<Complete>(last_.front()).instance_start, 9s) << "ahead of its dispatch";
  EXPECT_EQ(core_->counters().cold_starts, 2u);
}

TEST_F(StartAhead, StartsWhileTheSlotIsBusyUpToTheLimit) {
  use_ahead({.starts_per_gpu = 1});
  occupy_the_slot();
  EXPECT_THAT(arrive(2, kB), ElementsAre("start instance=2 flow=2 gpu=1"));
  EXPECT_THAT(arrive(3, kC), IsEmpty());
  EXPECT_EQ(starting(), 1u);
  EXPECT_THAT(ready(2, 3s), ElementsAre("start instance=3 flow=3 gpu=1"));
}

TEST_F(StartAhead, AFlowGetsOneInstanceHoweverManyWait) {
  use_ahead({});
  occupy_the_slot();
  EXPECT_THAT(arrive(2, kB), ElementsAre("start instance=2 flow=2 gpu=1"));
  EXPECT_THAT(arrive(3, kB), IsEmpty());
  EXPECT_THAT(arrive(4, kA), IsEmpty()) << "its instance is busy, and no slot idles for a second";
}

TEST_F(StartAhead, ADuplicateStartsOnlyForASlotThatIdles) {
  use({.slots_per_gpu = 3, .starts_per_gpu = 4});
  add(kA);
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(arrive(2, kA), ElementsAre("start instance=2 flow=1 gpu=1"));
  EXPECT_THAT(arrive(3, kA), ElementsAre("start instance=3 flow=1 gpu=1"));
  EXPECT_THAT(arrive(4, kA), IsEmpty()) << "three slots, three coming";
}

TEST_F(StartAhead, WhileTheFirstStartOfAFunctionGoesOnNoSecondOneBegins) {
  use({.slots_per_gpu = 2, .starts_per_gpu = 4, .no_cold_duplicates = true});
  add(kA);
  EXPECT_THAT(arrive(1, kA, 1s), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(arrive(2, kA, 1s), IsEmpty()) << "nobody knows how long a start takes: a second one ends no sooner";
  EXPECT_THAT(arrive(3, kA, 200s), IsEmpty());
  EXPECT_THAT(ready(1, 201s), ElementsAre("deliver invocation=1 instance=1"));
}

// A start takes 9 s, and nobody knows how long a run takes: the second invocation waits for the first, which does not end.
TEST_F(StartAhead, WhoWaitsForABusyInstanceIsGivenAnotherOnceThatIsOverdue) {
  use({.slots_per_gpu = 2, .starts_per_gpu = 4, .no_cold_duplicates = true});
  add(kA);
  arrive(1, kA);
  ready(1, 9s);
  EXPECT_THAT(arrive(2, kA, 10s), IsEmpty());
  Lines started;
  for (int wakes = 0; wakes < 10 && started.empty(); ++wakes) started = wake(*core_->next_wakeup() - Instant());
  EXPECT_THAT(started, ElementsAre("start instance=2 flow=1 gpu=1"));
  EXPECT_LE(now_, Instant(20s));
}

TEST_F(StartAhead, ReservedConcurrencyBoundsWhatStarts) {
  use({.slots_per_gpu = 3, .starts_per_gpu = 4});
  core_->add_function({.flow = kA, .max_concurrency = 2});
  arrive(1, kA);
  EXPECT_THAT(arrive(2, kA), ElementsAre("start instance=2 flow=1 gpu=1"));
  EXPECT_THAT(arrive(3, kA), IsEmpty());
}

// ---- whose place it takes

TEST_F(StartAhead, EvictsAnIdleInstanceWhileTheSlotIsBusy) {
  use_ahead({.instances_per_gpu = 2});
  occupy_the_slot();
  arrive(2, kB);
  ready(2);
  EXPECT_THAT(answered(1), ElementsAre("complete invocation=1 success", "deliver invocation=2 instance=2"));
  idle(1);
  EXPECT_THAT(arrive(3, kC), ElementsAre("stop instance=1 evicted", "start instance=3 flow=3 gpu=1"));
}

TEST_F(StartAhead, WhatStartedForWorkThatStillWaitsKeepsItsPlace) {
  use_ahead({.instances_per_gpu = 2});
  occupy_the_slot();
  arrive(2, kB);
  ready(2);
  EXPECT_THAT(arrive(3, kC), IsEmpty()) << "B's instance has not served its invocation yet";
  EXPECT_THAT(cancel(2), ElementsAre("complete invocation=2 cancelled", "stop instance=2 evicted",
                                     "start instance=3 flow=3 gpu=1"));
}

// C is enough for the next turn. B's instance is warm, and D's would only wait behind C's.
TEST_F(StartAhead, TakesNobodysPlaceWhileAsManyStartAsThereAreSlots) {
  use_ahead({.instances_per_gpu = 3});
  constexpr FlowId kD(4);
  add(kD);
  occupy_the_slot();
  arrive(2, kB);
  ready(2);
  EXPECT_THAT(answered(1), ElementsAre("complete invocation=1 success", "deliver invocation=2 instance=2"));
  idle(1);
  EXPECT_THAT(arrive(3, kC), ElementsAre("start instance=3 flow=3 gpu=1")) << "the third place is free";
  EXPECT_THAT(arrive(4, kD), IsEmpty());
  EXPECT_THAT(ready(3), IsEmpty()) << "C's is ready and waits for the slot";
  EXPECT_THAT(answered(2), ElementsAre("complete invocation=2 success", "deliver invocation=3 instance=3",
                                       "stop instance=1 evicted", "start instance=4 flow=4 gpu=1"))
      << "C's turn has come: one more may start for the next";
}

// B was called every 100 s and has a call queued: its instance is needed next, so C's goes, which is called more often.
TEST_F(StartAhead, AnInstanceWhoseCallWaitsWithinTheWindowIsNotTheOneThatIsMissedLeast) {
  use_ahead({.instances_per_gpu = 3, .eviction = EvictionKind::kCost});
  constexpr FlowId kD(4);
  add(kD);
  const auto call = [&](std::uint64_t invocation, FlowId flow, std::uint64_t instance, Duration at) {
    arrive(invocation, flow, at);
    answered(invocation, at + 1s);
    idle(instance, at + 1s);
  };
  std::uint64_t instance = 0;
  for (const FlowId flow : {kB, kC, kA}) {
    arrive(++instance, flow, instance * 10s);
    run_to_idle(instance, instance, instance * 10s + 5s);
  }
  call(4, kC, 2, 40s);
  call(5, kB, 1, 110s);
  call(6, kC, 2, 111s);
  EXPECT_THAT(arrive(7, kA, 113s), ElementsAre("deliver invocation=7 instance=3"));
  EXPECT_THAT(arrive(8, kB, 114s), IsEmpty());
  EXPECT_THAT(arrive(9, kD, 115s), ElementsAre("stop instance=2 evicted", "start instance=4 flow=4 gpu=1"));
}

// Otherwise functions that always have work could keep a cold one out for ever, where the policy has no window.
TEST_F(StartAhead, AnInstanceThatHasServedGivesUpItsPlaceThoughItsFlowHasWork) {
  use_ahead({.instances_per_gpu = 2});
  occupy_the_slot();
  arrive(2, kB);
  ready(2);
  answered(1);
  idle(1);
  arrive(3, kA);
  EXPECT_THAT(arrive(4, kC), ElementsAre("stop instance=1 evicted", "start instance=3 flow=3 gpu=1"));
}

TEST_F(StartAhead, WhatStartsIsNotEvicted) {
  use_ahead({.instances_per_gpu = 2});
  occupy_the_slot();
  arrive(2, kB);
  EXPECT_THAT(arrive(3, kC), IsEmpty());
  EXPECT_THAT(answered(1),
              ElementsAre("complete invocation=1 success", "stop instance=1 evicted", "start instance=3 flow=3 gpu=1"));
  EXPECT_EQ(starting(), 2u);
}

TEST_F(StartAhead, WhatRunsAndWhatStartsFitTheDeviceTogether) {
  use({.slots_per_gpu = 1, .starts_per_gpu = 4}, /*gpus=*/0);
  core_->add_gpu({.gpu = GpuId(1), .memory = gib(8)});
  for (const FlowId flow : {kA, kB, kC}) core_->add_function({.flow = flow, .expected_memory = gib(3)});
  occupy_the_slot();
  EXPECT_THAT(arrive(2, kB), ElementsAre("start instance=2 flow=2 gpu=1"));
  EXPECT_EQ(core_->gpus().front().memory_admitted, gib(6));
  EXPECT_THAT(arrive(3, kC), IsEmpty()) << "9 GiB of 8";
  EXPECT_THAT(ready(2, 5s), IsEmpty()) << "B's memory cannot leave, as it never reported, and its work waits";
  EXPECT_THAT(answered(1, 6s), ElementsAre("complete invocation=1 success", "deliver invocation=2 instance=2",
                                           "stop instance=1 evicted", "start instance=3 flow=3 gpu=1"));
}

// ---- starts that fail

TEST_F(StartAhead, AFailedStartEndsOneInvocationAndIsCharged) {
  use_ahead({});
  occupy_the_slot();
  arrive(2, kB, 1s);
  arrive(3, kB, 1s);
  EXPECT_THAT(gone(2, 4s), ElementsAre("complete invocation=2 start_failed", "start instance=3 flow=2 gpu=1"));
  EXPECT_EQ(core_->flow(kB).virtual_time, 3s);
  EXPECT_EQ(core_->flow(kB).queued, 1u);
  EXPECT_EQ(core_->flow(kB).in_flight, 0u);
}

TEST_F(StartAhead, AStartPastItsDeadlineFailsTheSameWay) {
  use_ahead({.start_deadline = 10s});
  occupy_the_slot();
  arrive(2, kB, 1s);
  EXPECT_THAT(wake(11s), ElementsAre("stop instance=2 start_failed", "complete invocation=2 start_failed"));
  EXPECT_THAT(ready(2, 12s), IsEmpty());
  EXPECT_EQ(starting(), 0u);
}

TEST_F(StartAhead, AFailedStartThatNobodyWaitsForEndsNothing) {
  use_ahead({});
  occupy_the_slot();
  arrive(2, kB, 1s);
  cancel(2);
  EXPECT_THAT(gone(2, 4s), IsEmpty());
}

// ---- what else ends it

TEST_F(StartAhead, NewCodeStartsAgainAndNothingFails) {
  use_ahead({});
  occupy_the_slot();
  arrive(2, kB);
  EXPECT_THAT(update({.flow = kB}), ElementsAre("stop instance=2 function_changed", "start instance=3 flow=2 gpu=1"));
}

TEST_F(StartAhead, ARemovedFunctionsStartStops) {
  use_ahead({});
  occupy_the_slot();
  arrive(2, kB);
  EXPECT_THAT(remove(kB), ElementsAre("stop instance=2 function_changed", "complete invocation=2 removed"));
  EXPECT_THAT(gone(2), IsEmpty());
}

TEST_F(StartAhead, ADrainedGpusStartsGoElsewhere) {
  use({.slots_per_gpu = 1, .starts_per_gpu = 4}, /*gpus=*/2);
  add(kA);
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(drain_gpu(1), ElementsAre("stop instance=1 gpu_drained", "start instance=2 flow=1 gpu=2"));
}

TEST_F(StartAhead, ShutdownStopsWhatStartsAndCompletesWhatWaits) {
  use_ahead({});
  arrive(1, kA);
  EXPECT_THAT(shut_down(), ElementsAre("stop instance=1 shutdown", "complete invocation=1 shutdown"));
}

TEST_F(StartAhead, WithoutAPoolAStartHoldsItsSlot) {
  core_ =
      std::make_unique<Core>(CoreOptions{.slots_per_gpu = 1, .starts_per_gpu = 4}, testing::policy_named("fcfs-naive"));
  core_->add_gpu({.gpu = GpuId(1)});
  add(kA);
  arrive(1, kA);
  EXPECT_EQ(slots(), 1u);
  EXPECT_THAT(arrive(2, kA), IsEmpty());
}

TEST_F(StartAhead, APreparedFunctionStartsWithoutAnInvocationAndItsFirstIsWarm) {
  core_ = std::make_unique<Core>(CoreOptions{.slots_per_gpu = 1, .instances_per_gpu = 2, .starts_per_gpu = 1},
                                 testing::policy_named("mqfq-setup"));
  core_->add_gpu({.gpu = GpuId(1)});
  for (const FlowId flow : {FlowId(1), FlowId(2), FlowId(3)}) {
    add(flow);
    core_->prepare(flow);
  }
  EXPECT_THAT(wake(1s), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(ready(1), ElementsAre("start instance=2 flow=2 gpu=1")) << "one at a time";
  EXPECT_THAT(arrive(1, FlowId(1)), ElementsAre("deliver invocation=1 instance=1"));
  EXPECT_EQ(std::get<Deliver>(last_.front()).start, StartKind::kDeviceWarm);
  EXPECT_THAT(ready(2), IsEmpty()) << "the third would take somebody's place";
}

}  // namespace
}  // namespace fairlead
