// Policies that choose the GPU too, on the node's core: invocations begin where they say.
#include <gmock/gmock.h>

#include "decide/core/core_test_support.h"
#include "decide/queueing/window.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::CoreTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::policy_named;

constexpr FlowId kA(1), kB(2);

// Two GPUs, a slot each.
class GpuPolicies : public CoreTest {
 protected:
  void use_policy(std::string_view name, CoreOptions options = {.slots_per_gpu = 1}) {
    core_ = std::make_unique<Core>(options, policy_named(name, PolicyOptions().set(kPatienceReloads, 1)));
    for (const GpuId gpu : {GpuId(1), GpuId(2)}) core_->add_gpu({.gpu = gpu});
    for (const FlowId flow : {kA, kB}) add(flow);
  }
};

// The placer by itself would take instance 1, which has nothing to load.
TEST_F(GpuPolicies, CfsAffinityReturnsToTheGpuOfItsLastInvocation) {
  use_policy("cfs-affinity", {.slots_per_gpu = 1, .no_cold_duplicates = false});
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(arrive(2, kA), ElementsAre("start instance=2 flow=1 gpu=2"));
  run_to_idle(1, 1, 1s);
  run_to_idle(2, 2, 1s);
  core_->set_reload(InstanceId(2), 100ms);
  EXPECT_THAT(arrive(3, kA), ElementsAre("deliver invocation=3 instance=2"));
}

TEST_F(GpuPolicies, ExclusiveStopsTheProcessOfTheFunctionThatLosesTheGpu) {
  use_policy("exclusive", {.slots_per_gpu = 2});
  arrive(1, kA);
  arrive(2, kA);
  run_to_idle(1, 1, 1s);
  run_to_idle(2, 2, 1s);
  EXPECT_THAT(arrive(3, kB), ElementsAre("stop instance=1 evicted", "start instance=3 flow=2 gpu=1"));
  EXPECT_THAT(arrive(4, kB), IsEmpty()) << "its pool is as large as A's, and a GPU serves one at a time";
  ready(3);
  EXPECT_THAT(answered(3, 2s), ElementsAre("complete invocation=3 success"));
  EXPECT_THAT(idle(3), ElementsAre("deliver invocation=4 instance=3"));
}

TEST_F(GpuPolicies, ExclusiveStartsNothingAhead) {
  use_policy("exclusive", {.slots_per_gpu = 1, .starts_per_gpu = 4});
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  ready(1);
  EXPECT_EQ(answered(1, 1s).front(), "complete invocation=1 success") << "the invocation was bound to its start";
}

// A's constants of 20 MiB are on GPU 1, which is busy. GPU 2 has so much of 64 MiB in use, and they would load for 100 ms.
class ConstantsOfAnotherGpu : public GpuPolicies {
 protected:
  void use(std::string_view policy, Bytes in_use) {
    use_policy(policy, {.slots_per_gpu = 1, .no_cold_duplicates = false});
    for (const std::uint64_t n : {1, 2}) arrive(n, kA, 0s);
    for (const std::uint64_t n : {1, 2}) {
      run_to_idle(n, n, 1s);
      core_->set_session_memory(InstanceId(n), {.server = n, .device = mib(64), .constants = {{7, mib(20)}}});
    }
    core_->set_residence(InstanceId(1), {.resident = mib(60)});
    core_->set_residence(InstanceId(2), {.missing = mib(20), .reload = 100ms, .resident = in_use});
    EXPECT_THAT(arrive(3, kA, 2s), ElementsAre("deliver invocation=3 instance=1"));
  }
  void expect_wait_for_a_load() {
    EXPECT_THAT(arrive(4, kA, 2s), IsEmpty());
    ASSERT_EQ(core_->next_wakeup(), Instant(2100ms));
    EXPECT_THAT(wake(2100ms), ElementsAre("deliver invocation=4 instance=2"));
  }
};

TEST_F(ConstantsOfAnotherGpu, AreWaitedForWhereACopyWouldEvict) {
  for (const char* policy : {"mqfq-setup", "resident-window"}) {
    use(policy, mib(60));
    expect_wait_for_a_load();
  }
}

TEST_F(ConstantsOfAnotherGpu, AreCopiedAtOnceIntoMemoryThatIsFree) {
  for (const char* policy : {"mqfq-setup", "resident-window"}) {
    use(policy, mib(40));
    EXPECT_THAT(arrive(4, kA, 2s), ElementsAre("deliver invocation=4 instance=2")) << policy;
  }
}

// One GPU of three slots whose device server has 64 MiB; A, B and C have 20 MiB of constants, and 10 MiB a call.
class TaskMemory : public CoreTest {
 protected:
  void SetUp() override {
    core_ = std::make_unique<Core>(CoreOptions{.slots_per_gpu = 3}, policy_named("mqfq-setup", {}));
    core_->add_gpu({.gpu = GpuId(1)});
    for (const FlowId flow : {kA, kB, kC}) {
      add(flow);
      arrive(flow.value(), flow);
      run_to_idle(flow.value(), flow.value(), 1s);
      core_->set_session_memory(
          InstanceId(flow.value()),
          {.server = 1, .device = mib(64), .constants = {{flow.value(), mib(20)}}, .call = mib(10)});
    }
  }
  void missing(std::uint64_t instance, Bytes bytes) {
    core_->set_residence(InstanceId(instance),
                         {.missing = bytes, .reload = bytes == Bytes(0) ? 0ms : 100ms, .resident = mib(40)});
  }
  static constexpr FlowId kC{3};
};

TEST_F(TaskMemory, ACallThatDoesNotFitBesideThoseThatRunWaits) {
  for (const std::uint64_t instance : {1, 2, 3}) missing(instance, Bytes(0));
  EXPECT_THAT(arrive(11, kA), ElementsAre("deliver invocation=11 instance=1"));
  EXPECT_THAT(arrive(12, kB), ElementsAre("deliver invocation=12 instance=2"));
  EXPECT_THAT(arrive(13, kC), IsEmpty()) << "60 of 64 MiB are held";
  EXPECT_THAT(answered(11, 2s), ElementsAre("complete invocation=11 success", "deliver invocation=13 instance=3"));
}

// A and B take turns in closed loops; C would push one of them out, though a slot is free.
TEST_F(TaskMemory, WhatWouldEvictThoseWhoAreServedIsNotWorthItYet) {
  missing(1, Bytes(0));
  missing(2, Bytes(0));
  missing(3, mib(20));
  arrive(11, kA, 1s);
  arrive(12, kB, 1s);
  EXPECT_THAT(arrive(13, kC, 1s), IsEmpty());
  EXPECT_THAT(answered(11, 1010ms), ElementsAre("complete invocation=11 success")) << "A is expected back";
  idle(1);
  EXPECT_THAT(arrive(14, kA, 1011ms), ElementsAre("deliver invocation=14 instance=1"));
  answered(12, 1012ms);
  idle(2);
  EXPECT_THAT(answered(14, 1013ms), ElementsAre("complete invocation=14 success", "deliver invocation=13 instance=3"))
      << "nothing runs any more";
}

}  // namespace
}  // namespace fairlead
