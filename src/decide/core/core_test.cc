#include "decide/core/core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/core/core_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::CoreTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr FlowId kA(1), kB(2);

// ---- the way of an invocation

TEST_F(CoreTest, ColdThenWarm) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  EXPECT_THAT(in_full(), ElementsAre("start instance=1 flow=1 gpu=1"));
  ready(1, 9s);
  EXPECT_THAT(in_full(), ElementsAre("deliver invocation=1 instance=1 gpu=1 start=cold deadline_ns=69000000000"));
  answered(1, 11s);
  EXPECT_THAT(in_full(), ElementsAre("complete invocation=1 flow=1 outcome=success start=cold queue_ns=0 "
                                     "start_ns=9000000000 service_ns=2000000000"));
  EXPECT_THAT(idle(1, 11s), IsEmpty());
  arrive(2, kA, 20s);
  EXPECT_THAT(in_full(),
              ElementsAre("deliver invocation=2 instance=1 gpu=1 start=device-warm deadline_ns=80000000000"));
  EXPECT_EQ(core_->counters().cold_starts, 1u);
  EXPECT_EQ(core_->counters().device_warm_starts, 1u);
}

// ---- work that goes on after its answer

TEST_F(CoreTest, AnswerPassesAtOnceAndTheSlotIsHeldUntilTheWorkHasEnded) {
  use({.slots_per_gpu = 1});
  add(kA);
  add(kB);
  arrive(1, kA);
  ready(1, 1s);
  arrive(2, kB, 2s);
  EXPECT_THAT(answered_early(1, 3s, 500ms), ElementsAre("complete invocation=1 success"));
  EXPECT_EQ(core_->gpus()[0].slots_in_use, 1u);
  EXPECT_EQ(core_->gpus()[0].answered_early, 1u);
  EXPECT_EQ(core_->flow(kA).in_flight, 1u);
  EXPECT_FALSE(core_->drained());
  EXPECT_THAT(idle(1, 4s), IsEmpty()) << "its work goes on, so it is not idle";
  EXPECT_THAT(work_ended(1, 6s, 4s), ElementsAre("charge invocation=1", "start instance=2 flow=2 gpu=1"));
  EXPECT_EQ(core_->flow(kA).virtual_time, 4s);
  EXPECT_EQ(core_->instances()[0].state, InstanceState::kIdle) << "it has asked for the next";
}

TEST_F(CoreTest, ChargeStatesWhatItsCompleteDidNot) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  ready(1, 1s);
  answered_early(1, 3s, 500ms);
  EXPECT_THAT(in_full(), ElementsAre("complete invocation=1 flow=1 outcome=success start=cold queue_ns=0 "
                                     "start_ns=1000000000 service_ns=500000000"));
  work_ended(1, 6s, 4s);
  EXPECT_THAT(in_full(), ElementsAre("charge invocation=1 flow=1 service_ns=4000000000 after_answer_ns=3500000000"));
}

TEST_F(CoreTest, NextInvocationOfTheInstanceWaitsForTheWorkOfTheLast) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  arrive(2, kA);
  ready(1, 1s);
  answered_early(1, 2s, 0s);
  EXPECT_THAT(idle(1, 2s), IsEmpty());
  EXPECT_THAT(work_ended(1, 5s, 4s), ElementsAre("charge invocation=1", "deliver invocation=2 instance=1"));
}

TEST_F(CoreTest, WorkThatDoesNotEndIsStoppedAtTheTimeoutAndChargedTheTimeHeld) {
  use({.slots_per_gpu = 1});
  core_->add_function({.flow = kA, .timeout = 10s});
  arrive(1, kA);
  ready(1, 1s);
  EXPECT_THAT(answered_early(1, 2s, 1ms), ElementsAre("complete invocation=1 success"));
  EXPECT_EQ(core_->next_wakeup(), Instant(11s));
  EXPECT_THAT(wake(11s), ElementsAre("stop instance=1 timeout", "charge invocation=1"));
  EXPECT_EQ(core_->flow(kA).virtual_time, 10s);
  EXPECT_EQ(core_->gpus()[0].slots_in_use, 0u);
  EXPECT_THAT(work_ended(1, 12s, 1s), IsEmpty()) << "late";
}

TEST_F(CoreTest, InstanceThatEndsWithItsWorkUnderWayIsChargedAndCompletesNothingTwice) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  ready(1, 1s);
  answered_early(1, 2s, 0s);
  EXPECT_THAT(gone(1, 4s), ElementsAre("charge invocation=1"));
  EXPECT_EQ(core_->counters().completed, 1u);
  EXPECT_EQ(core_->counters().failed, 0u);
  EXPECT_TRUE(core_->drained());
}

TEST_F(CoreTest, RetiringInstanceGoesWhenItsWorkHasEnded) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  ready(1, 1s);
  answered_early(1, 2s, 0s);
  EXPECT_THAT(update({.flow = kA}, 3s), IsEmpty());
  EXPECT_THAT(work_ended(1, 4s, 1s), ElementsAre("charge invocation=1", "stop instance=1 function_changed"));
}

// ---- what is charged

TEST_F(CoreTest, ChargeIsAtMostTheTimeHeldWhateverIsReported) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  ready(1, 1s);
  answered(1, 3s, /*gpu_time=*/1h);
  EXPECT_EQ(core_->flow(kA).virtual_time, 2s);
  idle(1, 3s);
  arrive(2, kA, 10s);
  answered(2, 20s, /*gpu_time=*/1us);
  EXPECT_EQ(core_->flow(kA).virtual_time, 3s) << "and at least a tenth of it";
}

TEST_F(CoreTest, WhatIsOwedIsPaidWithTheNextCharge) {
  use({.slots_per_gpu = 1});
  add(kA);
  core_->owes(kA, 5s);
  arrive(1, kA);
  ready(1, 1s);
  answered(1, 3s, 1s);
  EXPECT_EQ(core_->flow(kA).virtual_time, 6s);
  EXPECT_EQ(std::get<Complete>(last_[0]).owed, 5s);
  idle(1, 3s);
  arrive(2, kA, 3s);
  answered(2, 4s, 1s);
  EXPECT_EQ(core_->flow(kA).virtual_time, 7s) << "once";
  EXPECT_EQ(std::get<Complete>(last_[0]).owed, 0s);
}

TEST_F(CoreTest, WhatAVersionOwesItsFunctionOwes) {
  use({.slots_per_gpu = 1});
  add(kA);
  core_->add_function({.flow = kB, .family = kA});
  core_->owes(kB, 5s);
  arrive(1, kA);
  ready(1, 1s);
  answered(1, 3s, 1s);
  EXPECT_EQ(std::get<Complete>(last_[0]).owed, 5s);
  idle(1, 3s);
  core_->owes(kA, 2s);
  arrive(2, kB, 3s);
  ready(2, 4s);
  answered(2, 5s, 1s);
  EXPECT_EQ(std::get<Complete>(last_[0]).owed, 2s) << "whichever of them is called";
  idle(2, 5s);
  core_->owes(kB, 7s);
  remove(kB);
  arrive(3, kA, 5s);
  answered(3, 6s, 1s);
  EXPECT_EQ(std::get<Complete>(last_[0]).owed, 7s) << "whether it is there or not";
}

TEST_F(CoreTest, SlotIsHeldFromDispatchToAnswer) {
  use({.slots_per_gpu = 1});
  add(kA);
  add(kB);
  arrive(1, kA);
  EXPECT_THAT(arrive(2, kB), IsEmpty()) << "the only slot waits for a cold start";
  EXPECT_THAT(ready(1), ElementsAre("deliver invocation=1 instance=1"));
  EXPECT_THAT(answered(1), ElementsAre("complete invocation=1 success", "start instance=2 flow=2 gpu=1"));
}

TEST_F(CoreTest, NextInvocationWaitsForTheReturningInstance) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  ready(1);
  arrive(2, kA);
  EXPECT_THAT(answered(1), ElementsAre("complete invocation=1 success")) << "no second instance is started";
  EXPECT_THAT(idle(1), ElementsAre("deliver invocation=2 instance=1"));
}

TEST_F(CoreTest, SpreadsOverGpusAndSticksToTheWarmInstance) {
  use({.slots_per_gpu = 1}, /*gpus=*/2);
  add(kA);
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(arrive(2, kA), ElementsAre("start instance=2 flow=1 gpu=2"));
  run_to_idle(2, 2, 1s);
  EXPECT_THAT(arrive(3, kA, 2s), ElementsAre("deliver invocation=3 instance=2"));
}

TEST_F(CoreTest, EvictsTheLeastRecentlyUsedInstanceForAnotherFunction) {
  use({.slots_per_gpu = 1, .instances_per_gpu = 1});
  add(kA);
  add(kB);
  arrive(1, kA);
  run_to_idle(1, 1, 1s);
  EXPECT_THAT(arrive(2, kB, 2s), ElementsAre("stop instance=1 evicted", "start instance=2 flow=2 gpu=1"));
  EXPECT_EQ(core_->counters().evictions, 1u);
}

// The example of docs/explanation/core.md.
TEST_F(CoreTest, FairnessOutranksTheReturningInstance) {
  use({.slots_per_gpu = 1, .instances_per_gpu = 1});
  add(kA);
  add(kB);
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(arrive(2, kA, 1s), IsEmpty());
  EXPECT_THAT(arrive(3, kB, 1s), IsEmpty());
  EXPECT_THAT(ready(1, 9s), ElementsAre("deliver invocation=1 instance=1"));
  EXPECT_THAT(answered(1, 11s),
              ElementsAre("complete invocation=1 success", "stop instance=1 evicted", "start instance=2 flow=2 gpu=1"));
  EXPECT_THAT(gone(1, 11s), IsEmpty());
  EXPECT_THAT(ready(2, 12s), ElementsAre("deliver invocation=3 instance=2"));
}

TEST_F(CoreTest, ChargesGpuTimeWhenMeasuredButATenthOfWallTimeAtLeast) {
  use({.slots_per_gpu = 3});
  for (const FlowId flow : {FlowId(1), FlowId(2), FlowId(3)}) add(flow);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    arrive(i, FlowId(i));
    ready(i);
  }
  answered(1, 10s, 4s);
  answered(2, 10s, 1ms);
  answered(3, 10s);
  EXPECT_EQ(core_->flow(FlowId(1)).virtual_time, 4s);
  EXPECT_EQ(core_->flow(FlowId(2)).virtual_time, 1s);
  EXPECT_EQ(core_->flow(FlowId(3)).virtual_time, 10s);
}

TEST_F(CoreTest, FunctionErrorCompletesAsAnAnswer) {
  use({});
  add(kA);
  arrive(1, kA);
  ready(1);
  EXPECT_THAT(answered(1, 1s, std::nullopt, true), ElementsAre("complete invocation=1 function_error"));
  EXPECT_EQ(core_->counters().completed, 1u);
}

// ---- bounds

TEST_F(CoreTest, FullQueuesRefuseAndSayWhichLimit) {
  use({.slots_per_gpu = 1, .queue_limit = 3, .queue_limit_per_flow = 2});
  add(kA);
  core_->add_function({.flow = kB, .tenant = TenantId(1)});
  for (std::uint64_t i = 1; i <= 3; ++i) arrive(i, kA);  // one is dispatched, two wait
  EXPECT_EQ(refusal(4, kA), "2 invocations of the function are queued, the limit is 2; retry later");
  arrive(5, kB);
  EXPECT_EQ(refusal(6, kB), "3 invocations are queued on the node, queue_limit is 3; retry later");
  EXPECT_EQ(core_->counters().rejected, 2u);
  EXPECT_EQ(core_->counters().arrived, 4u);
}

TEST_F(CoreTest, ALoneTenantHasTheWholeQueue) {
  use({.slots_per_gpu = 1, .queue_limit = 30, .queue_limit_per_flow = 30});
  core_->add_function({.flow = kA, .tenant = TenantId(7)});
  for (std::uint64_t id = 1; id <= 31; ++id) arrive(id, kA);  // one runs
  EXPECT_EQ(refusal(32, kA), "30 invocations are queued on the node, queue_limit is 30; retry later");
}

TEST_F(CoreTest, ATenantsQueuesLeaveRoomForOthers) {
  use({.slots_per_gpu = 1, .queue_limit = 90, .queue_limit_per_flow = 30});
  std::uint64_t id = 0;
  for (std::uint64_t flow = 1; flow <= 4; ++flow) core_->add_function({.flow = FlowId(flow), .tenant = TenantId(7)});
  core_->add_function({.flow = FlowId(5), .tenant = TenantId(8)});
  std::size_t accepted = 0;
  for (std::uint64_t flow = 1; flow <= 4; ++flow) {
    for (int i = 0; i < 30; ++i) {
      Actions out;
      const Status arrived = core_->arrive(now_, InvocationId(++id), FlowId(flow), out);
      accepted += arrived.has_value() ? 1 : 0;
      if (!arrived) {
        EXPECT_THAT(arrived.error().message, ::testing::HasSubstr("a tenant may have twice as many as are free"));
      }
    }
  }
  EXPECT_EQ(accepted, 61U) << "one runs, and two thirds of the places are taken";
  EXPECT_EQ(refusal(++id, FlowId(1)),
            "61 invocations of the tenant are queued or run, and 30 places are free of the "
            "queue_limit 90: a tenant may have twice as many as are free; retry later");
  for (int i = 0; i < 20; ++i) arrive(++id, FlowId(5));  // another tenant's
  Actions out;
  for (std::uint64_t flow = 1; flow <= 4; ++flow) core_->remove_function(now_, FlowId(flow), out);
  core_->add_function({.flow = FlowId(6), .tenant = TenantId(7)});
  arrive(++id, FlowId(6));  // nothing stays counted
}

TEST_F(CoreTest, UnknownFunctionIsRefused) {
  use({});
  EXPECT_EQ(refusal(1, kA), "the function is none of this node's; deploy it");
}

TEST_F(CoreTest, ReservedConcurrencyLimitsWhatRunsAndZeroRefuses) {
  use({.slots_per_gpu = 4});
  core_->add_function({.flow = kA, .max_concurrency = 1});
  arrive(1, kA);
  EXPECT_THAT(arrive(2, kA), IsEmpty());
  EXPECT_THAT(limit(kA, 2), ElementsAre("start instance=2 flow=1 gpu=1"));
  arrive(3, kA);
  EXPECT_THAT(limit(kA, 0), ElementsAre("complete invocation=3 cancelled"));
  EXPECT_EQ(refusal(4, kA), "the function's reserved concurrency is 0; raise it to invoke");
}

TEST_F(CoreTest, WorkWaitsUntilThereIsAGpu) {
  use({}, /*gpus=*/0);
  add(kA);
  EXPECT_THAT(arrive(1, kA), IsEmpty());
  core_->add_gpu({.gpu = GpuId(1)});
  EXPECT_THAT(wake(1s), ElementsAre("start instance=1 flow=1 gpu=1"));
}

TEST(CoreOptionsTest, AreValidated) {
  EXPECT_TRUE(validate(CoreOptions{}));
  EXPECT_EQ(validate({.slots_per_gpu = 0}).error().message, "slots_per_gpu is 0, it must be at least 1");
  EXPECT_EQ(validate({.slots_per_gpu = 4, .instances_per_gpu = 3}).error().message,
            "instances_per_gpu is 3, it must be at least slots_per_gpu, which is 4");
}

// ---- failures

TEST_F(CoreTest, InvocationPastItsDeadlineIsKilled) {
  use({});
  core_->add_function({.flow = kA, .timeout = 3s});
  arrive(1, kA);
  ready(1, 10s);
  EXPECT_EQ(core_->next_wakeup(), Instant(13s));
  EXPECT_THAT(wake(12s), IsEmpty());
  EXPECT_THAT(wake(13s), ElementsAre("stop instance=1 timeout", "complete invocation=1 timeout"));
  EXPECT_THAT(core_->instances(), IsEmpty());
  EXPECT_EQ(core_->flow(kA).virtual_time, 3s) << "it used the GPU";
}

TEST_F(CoreTest, InstanceThatIsNeverReadyFailsItsInvocation) {
  use({.start_deadline = 30s});
  add(kA);
  arrive(1, kA);
  EXPECT_THAT(wake(30s), ElementsAre("stop instance=1 start_failed", "complete invocation=1 start_failed"));
}

TEST_F(CoreTest, InstanceThatExitsBeforeReadyFailsItsInvocationAndTheNextIsTried) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  arrive(2, kA);
  EXPECT_THAT(gone(1, 250ms), ElementsAre("complete invocation=1 start_failed", "start instance=2 flow=1 gpu=1"));
  EXPECT_THAT(gone(2, 500ms), ElementsAre("complete invocation=2 start_failed"));
  EXPECT_EQ(core_->flow(kA).virtual_time, 500ms) << "the time the slots were held";
}

TEST_F(CoreTest, InstanceThatExitsWhileBusyCrashesItsInvocation) {
  use({});
  add(kA);
  arrive(1, kA);
  ready(1);
  EXPECT_THAT(gone(1, 2s), ElementsAre("complete invocation=1 crashed"));
  EXPECT_EQ(core_->counters().failed, 1u);
}

TEST_F(CoreTest, IdleInstanceThatExitsIsForgotten) {
  use({});
  add(kA);
  arrive(1, kA);
  run_to_idle(1, 1, 1s);
  EXPECT_THAT(gone(1, 2s), IsEmpty());
  EXPECT_THAT(arrive(2, kA, 3s), ElementsAre("start instance=2 flow=1 gpu=1"));
}

TEST_F(CoreTest, InvocationBoundToAReturningInstanceThatExitsRunsElsewhere) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  ready(1);
  arrive(2, kA);
  answered(1);
  EXPECT_THAT(gone(1), ElementsAre("start instance=2 flow=1 gpu=1"));
  EXPECT_THAT(ready(2), ElementsAre("deliver invocation=2 instance=2"));
}

TEST_F(CoreTest, InvocationQueuedAgainIsCancelledWhenItsFunctionMayNoLongerRun) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  ready(1);
  arrive(2, kA);
  answered(1);
  EXPECT_THAT(limit(kA, 0), IsEmpty()) << "bound to the returning instance";
  EXPECT_THAT(gone(1), ElementsAre("complete invocation=2 cancelled"));
  EXPECT_TRUE(core_->drained());
}

TEST_F(CoreTest, InstanceThatAnswersAndNeverReturnsIsStopped) {
  use({.slots_per_gpu = 1, .return_deadline = 5s});
  add(kA);
  arrive(1, kA);
  ready(1);
  arrive(2, kA);
  answered(1, 1s);
  EXPECT_THAT(wake(6s), ElementsAre("stop instance=1 timeout", "start instance=2 flow=1 gpu=1"));
}

TEST_F(CoreTest, LateUnknownAndRepeatedEventsAreIgnored) {
  use({});
  core_->add_function({.flow = kA, .timeout = 3s});
  arrive(1, kA);
  EXPECT_THAT(answered(1), IsEmpty()) << "not delivered yet";
  EXPECT_THAT(idle(1), IsEmpty()) << "not ready yet";
  ready(1);
  EXPECT_THAT(ready(1), IsEmpty());
  EXPECT_THAT(idle(1), IsEmpty()) << "not answered yet";
  wake(3s);
  EXPECT_THAT(answered(1, 4s), IsEmpty());
  EXPECT_THAT(idle(1, 4s), IsEmpty());
  EXPECT_THAT(gone(1, 4s), IsEmpty());
  EXPECT_THAT(gone(77, 4s), IsEmpty());
  EXPECT_THAT(cancel(1, 4s), IsEmpty());
}

// ---- changes

TEST_F(CoreTest, CancelTakesOnlyWhatIsQueued) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  arrive(2, kA);
  EXPECT_THAT(cancel(1), IsEmpty()) << "dispatched";
  EXPECT_THAT(cancel(2), ElementsAre("complete invocation=2 cancelled"));
  EXPECT_THAT(cancel(2), IsEmpty());
}

TEST_F(CoreTest, UpdateStopsIdleInstancesAndRetiresBusyOnes) {
  use({});
  add(kA);
  arrive(1, kA);
  arrive(2, kA);
  run_to_idle(1, 1, 1s);
  ready(2, 1s);
  EXPECT_THAT(update({.flow = kA}, 2s), ElementsAre("stop instance=1 function_changed"));
  EXPECT_THAT(arrive(3, kA, 3s), ElementsAre("start instance=3 flow=1 gpu=1")) << "not on the old code";
  EXPECT_THAT(answered(2, 4s), ElementsAre("complete invocation=2 success", "stop instance=2 function_changed"));
}

TEST_F(CoreTest, RemoveCompletesWhatWaitsAndLetsWhatRunsAnswer) {
  use({.slots_per_gpu = 2});
  add(kA);
  for (std::uint64_t i = 1; i <= 3; ++i) arrive(i, kA);
  ready(1);
  EXPECT_THAT(remove(kA), ElementsAre("complete invocation=2 removed", "stop instance=2 function_changed",
                                      "complete invocation=3 removed"));
  EXPECT_EQ(refusal(4, kA), "the function is none of this node's; deploy it");
  EXPECT_THAT(answered(1), ElementsAre("complete invocation=1 success", "stop instance=1 function_changed"));
  EXPECT_TRUE(core_->drained());
}

TEST_F(CoreTest, DrainRefusesArrivalsAndFinishesWhatWasAccepted) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  arrive(2, kA);
  EXPECT_THAT(drain(), IsEmpty());
  EXPECT_EQ(refusal(3, kA), "the node is draining and accepts no invocations");
  run_to_idle(1, 1, 1s);
  EXPECT_FALSE(core_->drained());
  answered(2, 2s);
  EXPECT_TRUE(core_->drained());
}

TEST_F(CoreTest, ShutDownCompletesAndStopsEverything) {
  use({.slots_per_gpu = 2});
  add(kA);
  for (std::uint64_t i = 1; i <= 3; ++i) arrive(i, kA);
  ready(1);
  EXPECT_THAT(shut_down(), ElementsAre("complete invocation=1 shutdown", "stop instance=1 shutdown",
                                       "complete invocation=2 shutdown", "stop instance=2 shutdown",
                                       "complete invocation=3 shutdown"));
  EXPECT_TRUE(core_->drained());
  EXPECT_THAT(core_->instances(), IsEmpty());
  EXPECT_THAT(gone(1), IsEmpty());
}

TEST_F(CoreTest, ViewsShowInstancesAndSlots) {
  use({.slots_per_gpu = 2}, /*gpus=*/2);
  add(kA);
  arrive(1, kA);
  arrive(2, kA);
  ready(1, 1s);
  const auto instances = core_->instances();
  ASSERT_EQ(instances.size(), 2u);
  EXPECT_EQ(instances[0].state, InstanceState::kBusy);
  EXPECT_EQ(instances[1].state, InstanceState::kStarting);
  EXPECT_EQ(instances[1].gpu, GpuId(2));
  EXPECT_EQ(core_->gpus()[0].slots_in_use, 1u);
  EXPECT_EQ(core_->gpus()[1].instances, 1u);
}

}  // namespace
}  // namespace fairlead
