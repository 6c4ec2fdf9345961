#include <gmock/gmock.h>

#include <deque>
#include <map>

#include "decide/core/core_test_support.h"
#include "decide/queueing/queue_tenants.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::CoreTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr FlowId kA(1), kB(2);

class Gpus : public CoreTest {};

// ---- slots

TEST_F(Gpus, EachHasSlotsOfItsOwn) {
  use({.slots_per_gpu = 2}, /*gpus=*/0);
  core_->add_gpu({.gpu = GpuId(1), .slots = 1});
  core_->add_gpu({.gpu = GpuId(2)});
  add(kA);
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(arrive(2, kA), ElementsAre("start instance=2 flow=1 gpu=2"));
  EXPECT_THAT(arrive(3, kA), ElementsAre("start instance=3 flow=1 gpu=2"));
  EXPECT_THAT(arrive(4, kA), IsEmpty());
  EXPECT_EQ(core_->gpus()[0].slots, 1u);
  EXPECT_EQ(core_->gpus()[1].slots, 2u);
}

TEST_F(Gpus, OneMoreSlotDispatchesWhatWaits) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  arrive(2, kA);
  arrive(3, kA);
  EXPECT_THAT(set_slots(1, 2), ElementsAre("start instance=2 flow=1 gpu=1"));
}

TEST_F(Gpus, OneSlotLessTakesEffectAtTheNextAnswer) {
  use({.slots_per_gpu = 2});
  add(kA);
  add(kB);
  arrive(1, kA);
  arrive(2, kA);
  arrive(3, kB);
  ready(1);
  ready(2);
  EXPECT_THAT(set_slots(1, 1), IsEmpty()) << "nothing that runs is stopped";
  EXPECT_THAT(answered(1), ElementsAre("complete invocation=1 success"));
  EXPECT_THAT(answered(2), ElementsAre("complete invocation=2 success", "start instance=3 flow=2 gpu=1"));
}

TEST_F(Gpus, AnotherQueueLimitCountsFromTheNextArrivalOn) {
  use({.slots_per_gpu = 1, .queue_limit = 1});
  add(kA);
  arrive(1, kA);
  arrive(2, kA);
  EXPECT_THAT(refusal(3, kA), ::testing::HasSubstr("queue_limit is 1"));
  const auto retune = [&](std::size_t limit) {
    return lines({}, [&](Actions& out) { core_->retune(now_, {.queue_limit = limit}, out); });
  };
  EXPECT_THAT(retune(3), IsEmpty());
  arrive(4, kA);
  EXPECT_THAT(retune(1), IsEmpty()) << "what is queued stays queued";
  EXPECT_THAT(refusal(5, kA), ::testing::HasSubstr("2 invocations are queued on the node, queue_limit is 1"));
}

TEST_F(Gpus, ATenantsShareCountsFromTheNextChoiceOn) {
  core_ = std::make_unique<Core>(CoreOptions{.slots_per_gpu = 2},
                                 ::fairlead::testing::policy_named("mqfq-sticky", {.by_tenant = true}));
  core_->add_gpu({.gpu = GpuId(1)});
  core_->add_function({.flow = kA, .tenant = TenantId(1)});
  const auto retune = [&](std::optional<std::size_t> most) {
    return lines({}, [&](Actions& out) {
      core_->retune(now_, {.tenants = {{TenantId(1), {.max_concurrency = most}}}}, out);
    });
  };
  EXPECT_THAT(retune(1), IsEmpty());
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(arrive(2, kA), IsEmpty()) << "one of the tenant's runs already";
  EXPECT_THAT(retune(std::nullopt), ElementsAre("start instance=2 flow=1 gpu=1"));
}

// Two tenants, one slot: whose invocation is delivered next.
TEST_F(Gpus, ATenantsFactorCountsFromTheNextChoiceOnAndAReloadKeepsIt) {
  core_ = std::make_unique<Core>(CoreOptions{.slots_per_gpu = 1, .instances_per_gpu = 2},
                                 ::fairlead::testing::policy_named("mqfq-sticky", {.by_tenant = true}));
  core_->add_gpu({.gpu = GpuId(1)});
  core_->add_function({.flow = kA, .tenant = TenantId(1)});
  core_->add_function({.flow = kB, .tenant = TenantId(2)});
  Actions none;
  core_->retune(now_, {.tenant_factors = {{TenantId(1), 1.0 / 16}}}, none);
  core_->retune(now_, {.tenants = {{TenantId(1), {.weight = 2}}, {TenantId(2), {.weight = 2}}}}, none);
  EXPECT_EQ(QueueTenants::use(core_->policy(), TenantId(1)).served, Duration(0));
  std::uint64_t last = 0;
  for (int i = 0; i < 80; ++i) {
    for (const FlowId flow : {kA, kB}) ASSERT_TRUE(core_->arrive(now_, InvocationId(++last), flow, none));
  }
  std::map<FlowId, int> served;
  std::deque<Action> open(none.begin(), none.end());
  while (served[kA] + served[kB] < 68 && !open.empty()) {
    const Action action = open.front();
    open.pop_front();
    Actions next;
    if (const auto* start = std::get_if<StartInstance>(&action)) core_->instance_ready(now_, start->instance, next);
    if (const auto* deliver = std::get_if<Deliver>(&action)) {
      now_ += 1s;
      core_->answered(now_, deliver->invocation, false, Duration(1s), next);
      core_->instance_idle(now_, deliver->instance, next);
    }
    if (const auto* complete = std::get_if<Complete>(&action))
      ++served[complete->invocation.value() % 2 == 1 ? kA : kB];
    open.insert(open.end(), next.begin(), next.end());
  }
  EXPECT_EQ(served[kA] + served[kB], 68);
  EXPECT_NEAR(served[kA], 4, 2) << "a sixteenth of the other's";
}

// ---- dynamic D, health

class Devices : public CoreTest {
 protected:
  void sample(DeviceSample sample, Duration later = 200ms) {
    now_ += later;
    sample.gpu = GpuId(1);
    changes_ = lines({}, [&](Actions& out) { core_->device(now_, sample, out); });
  }
  template <typename Event>
  std::vector<std::string> tell(Event event) {
    return lines({}, [&](Actions& out) { event(*core_, now_, out); });
  }
  GpuView gpu() { return core_->gpus().front(); }
  void add_gpu(GpuSpec spec) {
    spec.gpu = GpuId(1);
    use({.slots_per_gpu = 4}, /*gpus=*/0);
    core_->add_gpu(spec);
    add(kA);
    add(kB);
  }

  std::vector<std::string> changes_;
};

TEST_F(Devices, DGrowsWhileCallsWaitAndTheGpuIsNotFull) {
  add_gpu({.is_dynamic = true});
  EXPECT_EQ(gpu().slots, 1u);
  for (std::uint64_t i = 1; i <= 3; ++i) arrive(i, kA);
  while (gpu().slots < 2 && now_ < Instant(10s)) sample({.utilisation = 0.3});
  EXPECT_THAT(changes_, ElementsAre("device gpu=1 slots", "start instance=2 flow=1 gpu=1"));
  for (int i = 0; i < 100; ++i) sample({.utilisation = 1.0});
  EXPECT_EQ(gpu().slots, 1u) << "two fill it";
}

TEST_F(Devices, AFixedDStays) {
  add_gpu({.slots = 2});
  for (std::uint64_t i = 1; i <= 4; ++i) arrive(i, kA);
  for (int i = 0; i < 100; ++i) sample({.utilisation = 0.1});
  for (int i = 0; i < 100; ++i) sample({.utilisation = 1.0});
  EXPECT_EQ(gpu().slots, 2u);
}

// A fault of one client: what runs ends, then the daemon starts again, then work does.
TEST_F(Devices, AFaultUnderMpsDrainsRestartsTheDaemonAndServesAgain) {
  add_gpu({.slots = 1, .has_daemon = true});
  arrive(1, kA);
  ready(1);
  arrive(2, kB);
  EXPECT_THAT(tell([](Core& core, Instant now, Actions& out) {
                core.device(now, DaemonSeen{GpuId(1), MpsDaemonState::kFault}, out);
              }),
              ElementsAre("device gpu=1 drained"));
  EXPECT_EQ(gpu().state, GpuState::kDraining);
  EXPECT_EQ(gpu().reason, "a fault of an MPS client");
  EXPECT_THAT(answered(1), ElementsAre("complete invocation=1 success", "stop instance=1 gpu_drained"));
  sample({});
  sample({}, 2s);
  EXPECT_THAT(tell([](Core& core, Instant now, Actions& out) { core.device(now, DeviceEmptied{GpuId(1)}, out); }),
              ElementsAre("device gpu=1 restart_daemon"));
  EXPECT_THAT(tell([](Core& core, Instant now, Actions& out) {
                core.device(now, DaemonStarted{GpuId(1), true}, out);
              }),
              ElementsAre("device gpu=1 serves", "start instance=2 flow=2 gpu=1"));
  EXPECT_EQ(gpu().daemon_restarts, 1u);
  EXPECT_EQ(gpu().reason, "");
}

TEST_F(Devices, ALostDeviceServesOnceItHasAnsweredForASecond) {
  add_gpu({.slots = 1});
  sample({.failure = "GPU is lost"});
  EXPECT_THAT(changes_, ElementsAre("device gpu=1 drained"));
  arrive(1, kA);
  EXPECT_THAT(tell([](Core& core, Instant now, Actions& out) { core.device(now, DeviceEmptied{GpuId(1)}, out); }),
              IsEmpty());
  sample({.failure = "GPU is lost"});
  sample({});
  EXPECT_THAT(changes_, IsEmpty());
  sample({}, 1s);
  EXPECT_THAT(changes_, ElementsAre("device gpu=1 serves", "start instance=1 flow=1 gpu=1"));
}

TEST_F(Devices, AnXidOfAProgramsOwnMakingChangesNothing) {
  add_gpu({.slots = 1});
  EXPECT_THAT(tell([](Core& core, Instant now, Actions& out) {
                core.device(now, DeviceFault{GpuId(1), 31}, out);
              }),
              IsEmpty());
  EXPECT_THAT(tell([](Core& core, Instant now, Actions& out) {
                core.device(now, DeviceFault{GpuId(1), 79}, out);
              }),
              ElementsAre("device gpu=1 drained"));
}

// Who drains it and its health each have a reason of their own, and give back that one alone.
TEST_F(Devices, WhatItsHealthDrainedStaysDrainedWhenWhoWithheldItGivesItBack) {
  add_gpu({.slots = 1});
  EXPECT_THAT(drain_gpu(1), IsEmpty());
  EXPECT_THAT(tell([](Core& core, Instant now, Actions& out) {
                core.device(now, DeviceFault{GpuId(1), 79}, out);
              }),
              ElementsAre("device gpu=1 drained"));
  EXPECT_THAT(arrive(1, kA), IsEmpty());
  EXPECT_THAT(restore_gpu(1), IsEmpty());
  EXPECT_FALSE(gpu().serves);
  tell([](Core& core, Instant now, Actions& out) { core.device(now, DeviceEmptied{GpuId(1)}, out); });
  while (!gpu().serves && now_ < Instant(60s)) sample({});
  EXPECT_THAT(changes_, ElementsAre("device gpu=1 serves", "start instance=1 flow=1 gpu=1"));
}

TEST_F(Devices, WhatIsWithheldStaysSoWhenItsHealthIsMended) {
  add_gpu({.slots = 1});
  drain_gpu(1);
  tell([](Core& core, Instant now, Actions& out) {
    core.device(now, DeviceFault{GpuId(1), 79}, out);
    core.device(now, DeviceEmptied{GpuId(1)}, out);
  });
  arrive(1, kA);
  while (gpu().state != GpuState::kServing && now_ < Instant(60s)) sample({});
  EXPECT_EQ(gpu().state, GpuState::kServing);
  EXPECT_FALSE(gpu().serves);
  EXPECT_THAT(restore_gpu(1), ElementsAre("start instance=1 flow=1 gpu=1"));
}

// What a device that fails says of its memory counts for nothing.
TEST_F(Devices, MemoryIsSampledWhileTheDeviceAnswers) {
  add_gpu({.memory = gib(16), .slots = 1});
  for (int i = 0; i < 20; ++i) sample({.failure = "GPU is lost", .memory_used = gib(4)});
  EXPECT_EQ(gpu().memory_unreported, Bytes(0));
  for (int i = 0; i < 20; ++i) sample({.memory_used = gib(3)});
  EXPECT_EQ(gpu().memory_unreported, gib(3));
}

// ---- a GPU that fails

TEST_F(Gpus, ADrainedOneStopsIdleInstancesAndLetsOthersAnswer) {
  use({.slots_per_gpu = 2});
  add(kA);
  add(kB);
  arrive(1, kA);
  run_to_idle(1, 1, 1s);
  arrive(2, kB);
  ready(2);
  EXPECT_THAT(drain_gpu(1), ElementsAre("stop instance=1 gpu_drained"));
  EXPECT_THAT(arrive(3, kA), IsEmpty());
  EXPECT_THAT(answered(2, 2s, {}, /*is_error=*/true),
              ElementsAre("complete invocation=2 function_error", "stop instance=2 gpu_drained"));
  EXPECT_FALSE(core_->gpus()[0].serves);
  EXPECT_THAT(restore_gpu(1), ElementsAre("start instance=3 flow=1 gpu=1"));
  EXPECT_TRUE(core_->gpus()[0].serves);
}

TEST_F(Gpus, AHangingInvocationOfADrainedOneEndsAtItsDeadline) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  ready(1);
  drain_gpu(1);
  EXPECT_THAT(wake(60s), ElementsAre("stop instance=1 timeout", "complete invocation=1 timeout"));
}

TEST_F(Gpus, WhatHadNotStartedOnADrainedOneMovesToAnother) {
  use({.slots_per_gpu = 1}, /*gpus=*/2);
  add(kA);
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(drain_gpu(1), ElementsAre("stop instance=1 gpu_drained", "start instance=2 flow=1 gpu=2"));
  EXPECT_THAT(ready(1), IsEmpty());
  ready(2, 3s);
  EXPECT_THAT(answered(1, 4s), ElementsAre("complete invocation=1 success"));
}

TEST_F(Gpus, WhatWaitsForAReturningInstanceOfADrainedOneIsQueuedAgain) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  ready(1);
  arrive(2, kA);
  answered(1);  // 2 waits for the instance to ask
  EXPECT_THAT(drain_gpu(1), ElementsAre("stop instance=1 gpu_drained"));
  EXPECT_EQ(core_->flow(kA).queued, 1u);
  EXPECT_THAT(restore_gpu(1), ElementsAre("start instance=2 flow=1 gpu=1"));
}

TEST_F(Gpus, TheOthersGoOnWhileOneIsDrained) {
  use({.slots_per_gpu = 1}, /*gpus=*/2);
  add(kA);
  add(kB);
  arrive(1, kA);
  run_to_idle(1, 1, 1s);  // warm on GPU 1
  drain_gpu(1);
  EXPECT_THAT(arrive(2, kA, 2s), ElementsAre("start instance=2 flow=1 gpu=2"));
  EXPECT_THAT(arrive(3, kB), IsEmpty());
  EXPECT_THAT(restore_gpu(1), ElementsAre("start instance=3 flow=2 gpu=1"));
}

TEST_F(Gpus, ARequeuedInvocationIsChargedOnce) {
  use({.slots_per_gpu = 1}, /*gpus=*/2);
  add(kA);
  arrive(1, kA);
  drain_gpu(1);
  ready(2, 1s);
  answered(1, 3s);
  EXPECT_EQ(core_->flow(kA).virtual_time, Duration(2s));
}

// ---- devices that come and go

class ComingAndGoing : public CoreTest {
 protected:
  Lines appears(std::uint64_t gpu) {
    return lines({}, [&](Actions& out) { core_->device(now_, DeviceAppeared{{.gpu = GpuId(gpu)}}, out); });
  }
  Lines goes(std::uint64_t gpu) {
    return lines({}, [&](Actions& out) { core_->device(now_, DeviceWent{GpuId(gpu)}, out); });
  }
};

TEST_F(ComingAndGoing, WhatWaitsForAnyDeviceRunsOnTheFirstThatAppears) {
  use({}, /*gpus=*/0);
  add(kA);
  EXPECT_THAT(arrive(1, kA), IsEmpty());
  EXPECT_THAT(appears(7), ElementsAre("start instance=1 flow=1 gpu=7"));
}

TEST_F(ComingAndGoing, WhatRunsOnOneThatGoesIsAnsweredAndWhatStartsBeginsElsewhere) {
  use({.slots_per_gpu = 2});
  add(kA);
  add(kB);
  arrive(1, kA);
  ready(1);
  arrive(2, kB);
  EXPECT_THAT(goes(1), ElementsAre("stop instance=2 gpu_drained"));
  EXPECT_EQ(core_->gpus().front().reason, "it is no longer there");
  EXPECT_THAT(appears(2), ElementsAre("start instance=3 flow=2 gpu=2"));
  EXPECT_THAT(gone(2), IsEmpty()) << "something runs there";
  EXPECT_THAT(answered(1), ElementsAre("complete invocation=1 success", "stop instance=1 gpu_drained"));
  EXPECT_THAT(gone(1), ElementsAre("device gpu=1 gone"));
  ASSERT_EQ(core_->gpus().size(), 1u);
  EXPECT_EQ(core_->gpus().front().gpu, GpuId(2));
}

// A process that is being killed has its memory on the device until it is gone, or nobody believes that it ever will be.
TEST_F(ComingAndGoing, WhatIsBeingKilledKeepsTheDevice) {
  use({});
  add(kA);
  arrive(1, kA);
  EXPECT_THAT(goes(1), ElementsAre("stop instance=1 gpu_drained"));
  EXPECT_EQ(core_->gpus().size(), 1u);
  ASSERT_TRUE(core_->next_wakeup());
  EXPECT_THAT(wake(*core_->next_wakeup() - Instant()), ElementsAre("device gpu=1 gone"));
}

TEST_F(ComingAndGoing, OneWithNothingOnItIsGoneAtOnceAndWhatIsSaidOfItLaterIsIgnored) {
  use({});
  add(kA);
  EXPECT_THAT(goes(1), ElementsAre("device gpu=1 gone"));
  EXPECT_THAT(goes(1), IsEmpty());
  EXPECT_THAT(device_used(1, gib(1)), IsEmpty());
  EXPECT_THAT(lines({}, [&](Actions& out) { core_->device(now_, DeviceSample{.gpu = GpuId(1), .failure = "x"}, out); }),
              IsEmpty());
  EXPECT_THAT(lines({}, [&](Actions& out) { core_->device(now_, DeviceFault{GpuId(1), 79}, out); }), IsEmpty());
  EXPECT_THAT(lines({}, [&](Actions& out) { core_->device(now_, DeviceEmptied{GpuId(1)}, out); }), IsEmpty());
  EXPECT_THAT(lines({}, [&](Actions& out) { core_->device(now_, DaemonStarted{GpuId(1), true}, out); }), IsEmpty());
  EXPECT_THAT(arrive(1, kA), IsEmpty());
  EXPECT_THAT(appears(2), ElementsAre("start instance=1 flow=1 gpu=2"));
}

// Its health would let it serve again.
TEST_F(ComingAndGoing, OneThatGoesIsNotRepaired) {
  use({});
  add(kA);
  arrive(1, kA);
  ready(1);
  EXPECT_THAT(lines({},
                    [&](Actions& out) {
                      core_->device(now_, DeviceFault{GpuId(1), 79}, out);
                    }),
              ElementsAre("device gpu=1 drained"));
  EXPECT_THAT(goes(1), IsEmpty());
  EXPECT_THAT(lines({}, [&](Actions& out) { core_->device(now_, DeviceEmptied{GpuId(1)}, out); }), IsEmpty());
  arrive(2, kA);
  EXPECT_THAT(lines(Duration(10s), [&](Actions& out) { core_->device(now_, DeviceSample{.gpu = GpuId(1)}, out); }),
              IsEmpty());
}

}  // namespace
}  // namespace fairlead
