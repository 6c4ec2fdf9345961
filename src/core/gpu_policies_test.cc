// Policies that choose the GPU too, on the node's core: invocations begin where they say.
#include <gmock/gmock.h>

#include "core/core_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::CoreTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::policy_named;

constexpr FlowId kA(1), kB(2);

// Two GPUs, a token each.
class GpuPolicies : public CoreTest {
 protected:
  void use_policy(std::string_view name, CoreOptions options = {.tokens_per_gpu = 1}) {
    core_ = std::make_unique<Core>(options, policy_named(name, {.patience_reloads = 1}));
    for (const GpuId gpu : {GpuId(1), GpuId(2)}) core_->add_gpu({.gpu = gpu});
    for (const FlowId flow : {kA, kB}) add(flow);
  }
};

// The placer by itself would take instance 1, which has nothing to load.
TEST_F(GpuPolicies, CfsAffinityReturnsToTheGpuOfItsLastInvocation) {
  use_policy("cfs-affinity", {.tokens_per_gpu = 1, .no_cold_duplicates = false});
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(arrive(2, kA), ElementsAre("start instance=2 flow=1 gpu=2"));
  run_to_idle(1, 1, 1s);
  run_to_idle(2, 2, 1s);
  core_->set_reload(InstanceId(2), 100ms);
  EXPECT_THAT(arrive(3, kA), ElementsAre("deliver invocation=3 instance=2"));
}

TEST_F(GpuPolicies, ExclusiveStopsTheProcessOfTheFunctionThatLosesTheGpu) {
  use_policy("exclusive", {.tokens_per_gpu = 2});
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
  use_policy("exclusive", {.tokens_per_gpu = 1, .starts_per_gpu = 4});
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  ready(1);
  EXPECT_EQ(answered(1, 1s).front(), "complete invocation=1 success") << "the invocation was bound to its start";
}

// A's constants are on GPU 1, which is busy; on GPU 2 they would load for 100 ms.
TEST_F(GpuPolicies, ResidentWindowWaitsAsLongAsALoadAndIsWoken) {
  use_policy("resident-window", {.tokens_per_gpu = 1, .no_cold_duplicates = false});
  arrive(1, kA, 0s);
  arrive(2, kA);
  run_to_idle(1, 1, 1s);
  run_to_idle(2, 2, 1s);
  core_->set_reload(InstanceId(2), 100ms);
  EXPECT_THAT(arrive(3, kA, 2s), ElementsAre("deliver invocation=3 instance=1"));
  EXPECT_THAT(arrive(4, kA, 2s), IsEmpty());
  ASSERT_EQ(core_->next_wakeup(), Instant(2100ms));
  EXPECT_THAT(wake(2100ms), ElementsAre("deliver invocation=4 instance=2"));
}

}  // namespace
}  // namespace fairlead
