// Instances that are kept in seats: when they start, who goes for them, how invocations reach them, and what that costs.
#include <gmock/gmock.h>

#include <cstdio>
#include <map>
#include <set>

#include "base/rng.h"
#include "decide/core/core_test_support.h"
#include "decide/core/seat_retries.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using testing::CoreTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr FlowId kA{1}, kB{2};
constexpr GpuId kGpu1{1}, kGpu2{2};

class SeatsTest : public CoreTest {
 protected:
  void use_ahead(CoreOptions options = {}, std::uint64_t gpus = 1) {
    options.starts_per_gpu = 2;
    use(options, gpus);
  }
  static FlowSpec seated(FlowId flow, std::vector<GpuId> seats, int request = 34) {
    FlowSpec spec{.flow = flow, .seats = std::move(seats), .request_percent = request};
    spec.most_instances = spec.seats.size();
    return spec;
  }
  Lines move(FlowId flow, std::vector<GpuId> seats) {
    return lines({}, [&](Actions& out) { core_->retune(now_, {.seats = {{flow, seats}}}, out); });
  }
  Duration virtual_time(FlowId flow) { return core_->flow(flow).virtual_time; }
};

TEST_F(SeatsTest, AnInstanceStartsBeforeAnybodyCallsAndStaysWhileOthersNeedRoom) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 2});
  core_->add_function(seated(kA, {kGpu1}));
  add(kB);
  EXPECT_THAT(wake(0s), ElementsAre("start instance=1 flow=1 gpu=1 entitled"));
  EXPECT_THAT(ready(1), IsEmpty());
  EXPECT_TRUE(core_->instances().front().entitled);
  EXPECT_THAT(arrive(1, kB), ElementsAre("start instance=2 flow=2 gpu=1"));
  run_to_idle(2, 1, 1s);
  add(FlowId(3));
  EXPECT_THAT(arrive(2, FlowId(3), 2s), ElementsAre("stop instance=2 evicted", "start instance=3 flow=3 gpu=1"))
      << "the pool is full, and only B's may go";
}

TEST_F(SeatsTest, ADeviceForSeatsRunsNobodyElseAndItsFunctionRunsNowhereElse) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 4, .task_loads_per_gpu = 1});
  FlowSpec spec = seated(kA, {kGpu2, kGpu2}, 100);
  spec.most_instances = 0;
  core_->add_function(spec);
  add(kB);
  EXPECT_THAT(arrive(1, kA), IsEmpty()) << "its device is not there, and no other is its";
  EXPECT_THAT(lines({},
                    [&](Actions& out) {
                      core_->device(now_, DeviceAppeared{{.gpu = kGpu2, .memory = gib(1), .only_seats = true}}, out);
                    }),
              ElementsAre("start instance=1 flow=1 gpu=2 entitled", "start instance=2 flow=1 gpu=2 entitled"));
  EXPECT_THAT(ready(1), ElementsAre("deliver invocation=1 instance=1"));
  EXPECT_THAT(ready(2), IsEmpty());
  EXPECT_THAT(arrive(2, kB), ElementsAre("start instance=3 flow=2 gpu=1"));
  EXPECT_THAT(ready(3), ElementsAre("deliver invocation=2 instance=3"));
  EXPECT_THAT(arrive(3, kB), IsEmpty()) << "the other device has no slot for it";
  EXPECT_THAT(arrive(4, kA), ElementsAre("deliver invocation=4 instance=2"));
  EXPECT_THAT(arrive(5, kA), IsEmpty());
}

TEST_F(SeatsTest, AnInvocationBeginsAtOnceBesideOneThatHoldsTheOnlySlot) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 4});
  core_->add_function(seated(kA, {kGpu1}));
  add(kB);
  wake(0s);
  ready(1);
  arrive(1, kB);
  EXPECT_THAT(ready(2), ElementsAre("deliver invocation=1 instance=2"));
  EXPECT_THAT(arrive(2, kB), IsEmpty());
  EXPECT_THAT(arrive(3, kA), ElementsAre("deliver invocation=3 instance=1"));
  EXPECT_EQ(core_->gpus().front().slots_in_use, 1u);
  EXPECT_THAT(arrive(4, kA), IsEmpty()) << "its one instance is busy, and it may have no other";
  EXPECT_THAT(answered(3, 1s), ElementsAre("complete invocation=3 success")) << "bound, and delivered when it asks";
  EXPECT_THAT(idle(1), ElementsAre("deliver invocation=4 instance=1"));
}

TEST_F(SeatsTest, WhoLosesItsSeatParksAndTakesTheNextBeforeAnotherStarts) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 4});
  FlowSpec spec = seated(kA, {kGpu1, kGpu1});
  spec.most_instances.reset();
  spec.parks = true;
  core_->add_function(spec);
  wake(0s);
  ready(1);
  ready(2, 1s);
  arrive(1, kA, 2s);
  EXPECT_THAT(move(kA, {kGpu1}), ElementsAre("seat instance=2 flow=1 gpu=1 parked")) << "1 runs, and stays";
  EXPECT_THAT(move(kA, {kGpu1, kGpu1}), ElementsAre("seat instance=2 flow=1 gpu=1 entitled"));
  EXPECT_THAT(arrive(2, kA), ElementsAre("deliver invocation=2 instance=2")) << "beside the other: it has its request";
  EXPECT_EQ(core_->gpus().front().slots_in_use, 0u);
}

TEST_F(SeatsTest, WhatRunsInASlotTakesTheSeatAndGivesTheSlotBack) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 4});
  FlowSpec spec{.flow = kA, .request_percent = 34};
  spec.parks = true;
  core_->add_function(spec);
  add(kB);
  arrive(1, kA, 0s);
  EXPECT_THAT(move(kA, {kGpu1}), ElementsAre("seat instance=1 flow=1 gpu=1 entitled")) << "it starts already";
  EXPECT_THAT(ready(1), ElementsAre("deliver invocation=1 instance=1"));
  EXPECT_EQ(core_->gpus().front().slots_in_use, 0u);
  EXPECT_THAT(arrive(2, kB), ElementsAre("start instance=2 flow=2 gpu=1"));
  EXPECT_THAT(ready(2), ElementsAre("deliver invocation=2 instance=2"));
  EXPECT_THAT(move(kA, {}), IsEmpty()) << "what runs runs on";
  EXPECT_THAT(answered(1, 1s), ElementsAre("complete invocation=1 success", "stop instance=1 function_changed"));
}

TEST_F(SeatsTest, ParkedOnesAreStoppedWhereAskedAndOthersAreNot) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 4});
  FlowSpec spec = seated(kA, {kGpu1, kGpu1});
  spec.parks = true;
  core_->add_function(spec);
  wake(0s);
  ready(1);
  ready(2, 1s);
  move(kA, {kGpu1});
  const auto stop = [&](std::uint64_t id) {
    return lines({}, [&](Actions& out) { core_->retune(now_, {.parked_to_stop = {InstanceId(id)}}, out); });
  };
  EXPECT_THAT(stop(1), IsEmpty()) << "it has the seat";
  EXPECT_THAT(stop(7), IsEmpty());
  EXPECT_THAT(stop(2), ElementsAre("stop instance=2 evicted"));
}

TEST_F(SeatsTest, FailedStartsAreCountedUntilOneIsReady) {
  use_ahead();
  core_->add_function(seated(kA, {kGpu1}));
  wake(0s);
  gone(1, 1s);
  EXPECT_EQ(core_->learnt(kA).failed, 1u);
  wake(2s);
  gone(2, 2s);
  EXPECT_EQ(core_->learnt(kA).failed, 2u);
  wake(10s);
  ready(3, 11s);
  EXPECT_EQ(core_->learnt(kA).failed, 0u);
  EXPECT_EQ(core_->learnt(kA).cold_start, Duration(1s));
  gone(3, 12s);
  EXPECT_EQ(core_->learnt(kA).failed, 0u) << "it had started";
}

TEST_F(SeatsTest, OnlyWhatGoesBeyondTheRequestCostsVirtualTime) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 4});
  FlowSpec spec = seated(kA, {kGpu1}, 40);
  spec.width_percent = 50;
  core_->add_function(spec);
  wake(0s);
  ready(1);
  arrive(1, kA, 0s);
  answered(1, 10s, 3s);
  EXPECT_EQ(virtual_time(kA), 0s) << "4 s were promised in the 10 s that it ran";
  idle(1);
  arrive(2, kA, 10s);
  answered(2, 20s, 9s);
  EXPECT_EQ(virtual_time(kA), 2500ms) << "5 s beyond, half as wide as the device";
}

TEST_F(SeatsTest, TheRequestOfTheStartCountsForTheCharge) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 4});
  core_->add_function(seated(kA, {kGpu1}, 40));
  wake(0s);
  ready(1);
  arrive(1, kA, 0s);
  update(seated(kA, {kGpu1}, 90), 9s);
  answered(1, 10s, 9s);
  EXPECT_EQ(virtual_time(kA), 5s) << "4 s were promised in the 10 s, whatever is asked for at the end";
}

TEST_F(SeatsTest, BestEffortPaysForTheWidthItTakes) {
  use_ahead();
  core_->add_function({.flow = kA, .width_percent = 25});
  core_->add_function({.flow = kB});
  arrive(1, kA);
  arrive(2, kB);
  ready(1);
  ready(2);
  answered(1, 8s);
  answered(2, 8s);
  EXPECT_EQ(virtual_time(kA), 2s);
  EXPECT_EQ(virtual_time(kB), 8s);
}

TEST_F(SeatsTest, AFlowInSeatsHoldsNobodyBack) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 4});
  core_->add_function(seated(kA, {kGpu1}));
  add(kB);
  wake(0s);
  ready(1);
  for (std::uint64_t i = 1; i <= 3; ++i) arrive(i, kA);
  EXPECT_FALSE(core_->flow(kA).contends);
  arrive(11, kB);
  ready(2);
  std::uint64_t next = 11;
  for (Duration at = 20s; at < 200s; at += 20s, ++next) {
    arrive(next + 1, kB, at - 1s);
    answered(next, at);
    EXPECT_THAT(idle(2), ElementsAre(fmt::format("deliver invocation={} instance=2", next + 1)));
    EXPECT_EQ(core_->flow(kB).state, FlowState::kActive);
  }
}

TEST_F(SeatsTest, BeyondItsSeatsAFunctionIsAsAnyOther) {
  use_ahead({.slots_per_gpu = 4, .instances_per_gpu = 8});
  FlowSpec spec = seated(kA, {kGpu1});
  spec.most_instances = 2;
  core_->add_function(spec);
  wake(0s);
  ready(1);
  arrive(1, kA);
  EXPECT_THAT(arrive(2, kA), ElementsAre("start instance=2 flow=1 gpu=1")) << "best effort";
  EXPECT_THAT(ready(2), ElementsAre("deliver invocation=2 instance=2"));
  EXPECT_EQ(core_->gpus().front().slots_in_use, 1u);
  EXPECT_THAT(arrive(3, kA), IsEmpty()) << "no more than two";
}

TEST_F(SeatsTest, WithoutARequestASeatKeepsAnInstanceAndNoMore) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 4});
  core_->add_function(seated(kA, {kGpu1, kGpu1}, 0));
  add(kB);
  EXPECT_THAT(wake(0s), ElementsAre("start instance=1 flow=1 gpu=1", "start instance=2 flow=1 gpu=1"));
  ready(1);
  ready(2);
  EXPECT_THAT(arrive(1, kA), ElementsAre("deliver invocation=1 instance=2"));
  EXPECT_EQ(core_->gpus().front().slots_in_use, 1u);
  EXPECT_THAT(arrive(2, kA), IsEmpty()) << "the slot is taken";
}

TEST_F(SeatsTest, MemoryOfASeatIsNobodyElses) {
  use_ahead({.slots_per_gpu = 2, .instances_per_gpu = 4});
  core_->device(now_, DeviceAppeared{{.gpu = GpuId(2), .memory = gib(16)}}, last_);
  FlowSpec a = seated(kA, {kGpu2});
  a.expected_memory = gib(6);
  core_->add_function({.flow = kB, .expected_memory = gib(11)});
  core_->drain_gpu(now_, kGpu1, last_);
  arrive(1, kB);
  ready(1);
  core_->add_function(a);
  EXPECT_THAT(wake(1s), IsEmpty()) << "B runs, and leaves 5 GiB";
  core_->add_function({.flow = FlowId(3), .expected_memory = gib(4)});
  EXPECT_THAT(arrive(2, FlowId(3)), IsEmpty()) << "what is left is kept for A";
  EXPECT_THAT(answered(1, 2s), ElementsAre("complete invocation=1 success", "start instance=2 flow=1 gpu=2 entitled",
                                           "stop instance=1 evicted", "start instance=3 flow=3 gpu=2"));
  ready(2);
  ready(3);
  EXPECT_EQ(core_->gpus().back().memory_admitted, gib(10)) << "idle, A's counts all the same";
}

TEST_F(SeatsTest, AFunctionLargerThanWhatSeatsLeaveStillRuns) {
  use_ahead({.slots_per_gpu = 2, .instances_per_gpu = 4});
  core_->device(now_, DeviceAppeared{{.gpu = GpuId(2), .memory = gib(16)}}, last_);
  core_->drain_gpu(now_, kGpu1, last_);
  FlowSpec a = seated(kA, {kGpu2});
  a.expected_memory = gib(6);
  core_->add_function(a);
  wake(0s);
  ready(1);
  core_->add_function({.flow = kB, .expected_memory = gib(16)});
  EXPECT_THAT(arrive(1, kB), ElementsAre("start instance=2 flow=2 gpu=2"));
  EXPECT_THAT(ready(2), ElementsAre("deliver invocation=1 instance=2"));
}

TEST_F(SeatsTest, ASeatThatNearlyFillsTheMemoryDoesNotKeepBestEffortOut) {
  use_ahead({.slots_per_gpu = 2, .instances_per_gpu = 4});
  core_->device(now_, DeviceAppeared{{.gpu = kGpu2, .memory = gib(16)}}, last_);
  core_->drain_gpu(now_, kGpu1, last_);
  FlowSpec a = seated(kA, {kGpu2});
  a.expected_memory = gib(15);
  core_->add_function(a);
  wake(0s);
  ready(1);
  for (int i = 0; i < 20; ++i) device_used(2, gib(17));
  ASSERT_GT(core_->gpus().back().memory_unreported, gib(1)) << "more than the seat leaves";
  core_->add_function({.flow = kB, .expected_memory = gib(2)});
  EXPECT_THAT(arrive(1, kB), ElementsAre("start instance=2 flow=2 gpu=2"));
  EXPECT_THAT(ready(2), ElementsAre("deliver invocation=1 instance=2"));
}

TEST_F(SeatsTest, AnInstanceThatWentIsReplacedAtOnceIfItServedAndLaterIfNot) {
  use_ahead();
  core_->add_function(seated(kA, {kGpu1}));
  wake(0s);
  ready(1);
  arrive(1, kA);
  answered(1, 1s);
  EXPECT_THAT(gone(1, 2s), ElementsAre("start instance=2 flow=1 gpu=1 entitled"));
  EXPECT_THAT(gone(2, 3s), IsEmpty());
  EXPECT_THAT(wake(3500ms), IsEmpty());
  EXPECT_EQ(core_->next_wakeup(), Instant(4s));
  EXPECT_THAT(wake(4s), ElementsAre("start instance=3 flow=1 gpu=1 entitled"));
  gone(3, 5s);
  EXPECT_EQ(core_->next_wakeup(), Instant(7s));
  EXPECT_THAT(update(seated(kA, {kGpu1}), 6s), ElementsAre("start instance=4 flow=1 gpu=1 entitled"))
      << "what changed may work";
}

TEST_F(SeatsTest, AnEarlyAnswerIsAnAnswerForWhoIsStartedAgain) {
  use_ahead();
  core_->add_function(seated(kA, {kGpu1}));
  wake(0s);
  ready(1);
  gone(1, 1s);
  wake(2s);
  ready(2);
  gone(2, 3s);
  EXPECT_THAT(wake(5s), ElementsAre("start instance=3 flow=1 gpu=1 entitled")) << "2 s later, as nothing was answered";
  ready(3);
  arrive(1, kA, 6s);
  answered_early(1, 7s, 1s);
  EXPECT_THAT(gone(3, 8s), Contains("start instance=4 flow=1 gpu=1 entitled"));
}

TEST(SeatRetries, PausesDoubleUntilSomethingIsServed) {
  SeatRetries retries;
  const Instant now(100s);
  std::vector<int> pauses;
  for (int i = 0; i < 9; ++i) {
    retries.failed(now);
    pauses.push_back(static_cast<int>(to_seconds(retries.not_before() - now)));
  }
  EXPECT_THAT(pauses, ElementsAre(1, 2, 4, 8, 16, 32, 64, 64, 64));
  retries.served();
  EXPECT_LT(retries.not_before(), now);
  retries.failed(now);
  EXPECT_EQ(retries.not_before(), now) << "the first after an answer";
  retries.failed(now);
  EXPECT_EQ(retries.not_before(), now + 1s);
}

TEST_F(SeatsTest, AFailedStartEndsTheHeadOfItsQueue) {
  use_ahead();
  core_->add_function(seated(kA, {kGpu1}));
  arrive(1, kA, 0s);
  arrive(2, kA);
  EXPECT_THAT(gone(1, 1s), ElementsAre("complete invocation=1 start_failed", "start instance=2 flow=1 gpu=1"))
      << "no seat is taken until 2 s: what waits starts an instance as anybody's does";
  EXPECT_THAT(ready(2), ElementsAre("deliver invocation=2 instance=2"));
  EXPECT_THAT(wake(2s), ElementsAre("start instance=3 flow=1 gpu=1 entitled"));
}

TEST_F(SeatsTest, OtherSeatsTakeEffectWhileItRuns) {
  use_ahead({}, 2);
  core_->add_function(seated(kA, {kGpu1}));
  wake(0s);
  ready(1);
  arrive(1, kA);
  EXPECT_THAT(move(kA, {kGpu2}), ElementsAre("start instance=2 flow=1 gpu=2 entitled")) << "the first runs on";
  ready(2);
  EXPECT_THAT(answered(1, 1s), ElementsAre("complete invocation=1 success", "stop instance=1 function_changed"));
  EXPECT_THAT(arrive(2, kA), ElementsAre("deliver invocation=2 instance=2"));
  EXPECT_THAT(move(kA, {}), IsEmpty());
  EXPECT_THAT(answered(2, 2s), ElementsAre("complete invocation=2 success", "stop instance=2 function_changed"));
  EXPECT_THAT(wake(3s), IsEmpty());
  EXPECT_THAT(arrive(3, kA), ElementsAre("start instance=3 flow=1 gpu=1")) << "best effort";
}

TEST_F(SeatsTest, OtherTermsReachWhoIsThereAndNobodyGoes) {
  use_ahead({.slots_per_gpu = 2, .instances_per_gpu = 4});
  const auto change = [&](const FlowSpec& spec) {
    return lines({}, [&](Actions& out) { core_->update_function(now_, spec, out, Core::Instances::kKept); });
  };
  core_->add_function(seated(kA, {kGpu1}, 30));
  wake(0s);
  ready(1);
  arrive(1, kA, 1s);
  EXPECT_THAT(change(seated(kA, {kGpu1}, 60)), ElementsAre("seat instance=1 flow=1 gpu=1 entitled"))
      << "it runs, and runs on";
  EXPECT_THAT(answered(1, 2s), ElementsAre("complete invocation=1 success"));
  idle(1);

  FlowSpec best_effort{.flow = kA};
  EXPECT_THAT(change(best_effort),
              ElementsAre("seat instance=1 flow=1 gpu=1 parked", "seat instance=1 flow=1 gpu=1 parked"));
  EXPECT_THAT(arrive(2, kA), ElementsAre("deliver invocation=2 instance=1"));
  EXPECT_EQ(core_->gpus().front().slots_in_use, 1u) << "as any other's";
  EXPECT_THAT(answered(2, 3s), ElementsAre("complete invocation=2 success"));
  idle(1);

  EXPECT_THAT(change(seated(kA, {kGpu1}, 50)), Contains("seat instance=1 flow=1 gpu=1 entitled"))
      << "it takes the seat: none starts";
  EXPECT_EQ(core_->instances().size(), 1u);
  EXPECT_THAT(arrive(3, kA), ElementsAre("deliver invocation=3 instance=1"));
  EXPECT_EQ(core_->gpus().front().slots_in_use, 0u);
}

TEST_F(SeatsTest, WhoRunsByARequestThatGoesKeepsItsSeatUntilItsAnswer) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 4});
  core_->add_function(seated(kA, {kGpu1}, 30));
  wake(0s);
  ready(1);
  arrive(1, kA, 1s);
  const auto change = [&](const FlowSpec& spec) {
    return lines({}, [&](Actions& out) { core_->update_function(now_, spec, out, Core::Instances::kKept); });
  };
  EXPECT_THAT(change(seated(kA, {kGpu1}, 0)), ElementsAre("seat instance=1 flow=1 gpu=1 entitled"))
      << "the seat is kept, its request is not";
  EXPECT_THAT(change(seated(kA, {kGpu1}, 50)), ElementsAre("seat instance=1 flow=1 gpu=1 entitled"));
  EXPECT_THAT(answered(1, 2s), Contains("stop instance=1 function_changed"));
}

// Terms at random, whatever the instances do meanwhile.
TEST_F(SeatsTest, OtherTermsAtAnyTimeBreakNothing) {
  use_ahead({.slots_per_gpu = 2, .instances_per_gpu = 4}, 2);
  core_->add_function(seated(kA, {kGpu1}, 30));
  Rng random(7);
  std::set<std::uint64_t> starting;
  std::map<std::uint64_t, std::uint64_t> runs;  // invocation by instance
  std::uint64_t invocation = 0, answers = 0;
  const auto see = [&](const Lines& all) {
    for (const std::string& line : all) {
      unsigned long one = 0, other = 0;
      if (std::sscanf(line.c_str(), "start instance=%lu", &one) == 1) starting.insert(one);
      if (std::sscanf(line.c_str(), "stop instance=%lu", &one) == 1) starting.erase(one), runs.erase(one);
      if (std::sscanf(line.c_str(), "deliver invocation=%lu instance=%lu", &one, &other) == 2) runs[other] = one;
    }
  };
  for (int step = 0; step < 3000; ++step) {
    FlowSpec spec{.flow = kA, .request_percent = static_cast<int>(random.below(3)) * 30};
    for (std::uint64_t seat = random.below(3); seat > 0; --seat)
      spec.seats.push_back(random.below(2) == 0 ? kGpu1 : kGpu2);
    spec.parks = random.below(2) == 0;
    if (random.below(2) == 0) spec.most_instances = std::max<std::size_t>(1, spec.seats.size());
    const auto instances = random.below(8) == 0 ? Core::Instances::kReplaced : Core::Instances::kKept;
    see(lines({}, [&](Actions& out) { core_->update_function(now_, spec, out, instances); }));
    see(arrive(++invocation, kA));
    if (random.below(3) != 0 && !starting.empty()) {
      const std::uint64_t instance = *starting.begin();
      starting.erase(instance);
      see(ready(instance));
    }
    if (random.below(3) == 0 || runs.empty()) continue;
    const auto [instance, answered_one] = *runs.begin();
    runs.erase(instance);
    see(answered(answered_one, std::chrono::milliseconds(step)));
    see(idle(instance));
    ++answers;
  }
  EXPECT_GT(answers, 500u);
}

TEST_F(SeatsTest, WithOtherTermsWhoHasNoSeatAnyMoreAndRunsGoesAfterItsAnswer) {
  use_ahead({.slots_per_gpu = 1, .instances_per_gpu = 4});
  core_->add_function(seated(kA, {kGpu1}, 30));
  wake(0s);
  ready(1);
  arrive(1, kA, 1s);
  lines({}, [&](Actions& out) { core_->update_function(now_, {.flow = kA}, out, Core::Instances::kKept); });
  EXPECT_THAT(answered(1, 2s), ElementsAre("complete invocation=1 success", "stop instance=1 function_changed"));
}

TEST_F(SeatsTest, WhileNoGpuOfItsSeatsServesItRunsElsewhere) {
  use_ahead({}, 2);
  core_->add_function(seated(kA, {kGpu1}));
  wake(0s);
  ready(1);
  EXPECT_THAT(drain_gpu(1), ElementsAre("stop instance=1 gpu_drained"));
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=2 flow=1 gpu=2"));
  EXPECT_THAT(ready(2), ElementsAre("deliver invocation=1 instance=2"));
  EXPECT_THAT(restore_gpu(1), ElementsAre("start instance=3 flow=1 gpu=1 entitled"));
  ready(3);
  EXPECT_THAT(arrive(2, kA), ElementsAre("deliver invocation=2 instance=3"));
}

TEST_F(SeatsTest, ASeatIsNotTakenTwiceWhileItsOldInstanceEnds) {
  use_ahead();
  core_->add_function(seated(kA, {kGpu1}));
  wake(0s);
  ready(1);
  arrive(1, kA);
  EXPECT_THAT(update(seated(kA, {kGpu1}, 50), 1s), IsEmpty());
  EXPECT_THAT(answered(1, 2s), ElementsAre("complete invocation=1 success", "stop instance=1 function_changed",
                                           "start instance=2 flow=1 gpu=1 entitled"));
}

TEST_F(SeatsTest, LimitsHoldForWhatGoesAtOnce) {
  use_ahead();
  FlowSpec spec = seated(kA, {kGpu1, kGpu1});
  spec.max_concurrency = 1;
  core_->add_function(spec);
  wake(0s);
  ready(1);
  ready(2);
  EXPECT_THAT(arrive(1, kA), ElementsAre("deliver invocation=1 instance=1"));
  EXPECT_THAT(arrive(2, kA), IsEmpty());
  EXPECT_THAT(answered(1, 1s), ElementsAre("complete invocation=1 success", "deliver invocation=2 instance=2"));
}

TEST_F(SeatsTest, RemovedOrDrainingNothingStarts) {
  use_ahead({}, 2);
  core_->add_function(seated(kA, {kGpu1, kGpu2}));
  wake(0s);
  ready(1);
  EXPECT_THAT(remove(kA), ElementsAre("stop instance=1 function_changed", "stop instance=2 function_changed"));
  EXPECT_THAT(wake(1s), IsEmpty());
  core_->add_function(seated(kB, {kGpu1}));
  EXPECT_THAT(drain(), IsEmpty());
  EXPECT_THAT(wake(2s), IsEmpty());
}

TEST_F(SeatsTest, WhereColdStartsHoldSlotsSeatsAreTakenAllTheSame) {
  use({.slots_per_gpu = 1, .instances_per_gpu = 4});
  core_->add_function(seated(kA, {kGpu1, kGpu1}));
  add(kB);
  EXPECT_THAT(wake(0s), ElementsAre("start instance=1 flow=1 gpu=1 entitled"));
  EXPECT_THAT(arrive(1, kB), ElementsAre("start instance=2 flow=2 gpu=1"));
  EXPECT_THAT(arrive(2, kA), IsEmpty());
  EXPECT_THAT(ready(1), ElementsAre("start instance=3 flow=1 gpu=1 entitled", "deliver invocation=2 instance=1"));
}

TEST_F(SeatsTest, PoliciesThatKeepNothingHaveNoSeats) {
  core_ = std::make_unique<Core>(CoreOptions{}, testing::policy_named("exclusive"));
  core_->add_gpu({.gpu = kGpu1});
  core_->add_function(seated(kA, {kGpu1}));
  EXPECT_THAT(wake(0s), IsEmpty());
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
}

}  // namespace
}  // namespace fairlead
