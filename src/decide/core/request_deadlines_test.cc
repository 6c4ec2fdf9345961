#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/core/core.h"
#include "decide/core/core_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::CoreTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr FlowId kA(1), kB(2);

class RequestDeadlines : public CoreTest {
 protected:
  // A call whose caller waits until then.
  Lines arrive_until(std::uint64_t invocation, FlowId flow, Duration until, std::optional<Duration> at = {}) {
    return lines(at, [&](Actions& out) {
      EXPECT_TRUE(core_->arrive(now_, InvocationId(invocation), flow, out, Instant(until)));
    });
  }
  // One that started at 0 s is ready at 1 s, and runs invocation 1.
  void run_first() {
    use({.slots_per_gpu = 1});
    add(kA);
    add(kB);
    arrive(1, kA, 0s);
    ready(1, 1s);
  }
};

TEST_F(RequestDeadlines, WhatIsQueuedExpiresAtItsDeadlineAndIsNeverDelivered) {
  run_first();
  EXPECT_THAT(arrive_until(2, kA, 5s, 2s), IsEmpty());
  EXPECT_EQ(core_->next_wakeup(), Instant(5s));
  EXPECT_THAT(wake(4s), IsEmpty());
  EXPECT_THAT(wake(5s), ElementsAre("complete invocation=2 expired"));
  EXPECT_THAT(in_full(), ElementsAre("complete invocation=2 flow=1 outcome=expired start=cold queue_ns=3000000000 "
                                     "start_ns=0 service_ns=0"));
  EXPECT_EQ(core_->flow(kA).queued, 0u);
  EXPECT_THAT(answered(1, 6s), ElementsAre("complete invocation=1 success"));
  EXPECT_THAT(idle(1, 6s), IsEmpty());
  EXPECT_TRUE(core_->drained());
  EXPECT_EQ(core_->counters().failed, 1u);
}

TEST_F(RequestDeadlines, WhatRunsEndsAtTheSoonerOfItsDeadlineAndItsFunctionsTimeout) {
  use({.slots_per_gpu = 2});
  add(kA);
  add(kB);
  arrive_until(1, kA, 20s, 0s);
  ready(1, 9s);
  EXPECT_THAT(in_full(), ElementsAre("deliver invocation=1 instance=1 gpu=1 start=cold deadline_ns=20000000000"));
  arrive_until(2, kB, 100s);
  ready(2, 10s);
  EXPECT_THAT(in_full(), ElementsAre("deliver invocation=2 instance=2 gpu=1 start=cold deadline_ns=70000000000"));
  EXPECT_THAT(wake(20s), ElementsAre("stop instance=1 timeout", "complete invocation=1 timeout"));
  EXPECT_THAT(wake(70s), ElementsAre("stop instance=2 timeout", "complete invocation=2 timeout"));
  EXPECT_TRUE(core_->drained());
}

TEST_F(RequestDeadlines, AStartWhoseCallExpiredGoesOnHoldsItsSlotAndIsPaidFor) {
  use({.slots_per_gpu = 1});
  add(kA);
  add(kB);
  arrive_until(1, kA, 5s, 0s);
  arrive(2, kA, 1s);
  EXPECT_THAT(wake(5s), ElementsAre("complete invocation=1 expired"));
  EXPECT_EQ(core_->gpus()[0].slots_in_use, 1u);
  EXPECT_THAT(arrive(3, kB), IsEmpty()) << "the slot is taken";
  EXPECT_THAT(ready(1, 9s), ElementsAre("start instance=2 flow=2 gpu=1")) << "B is next, for A was charged 9 s";
  EXPECT_GE(core_->flow(kA).virtual_time, 9s);
}

TEST_F(RequestDeadlines, AStartThatNobodyWaitsForLeavesAnIdleInstance) {
  use({.slots_per_gpu = 1});
  add(kA);
  arrive_until(1, kA, 5s, 0s);
  wake(5s);
  EXPECT_THAT(ready(1, 9s), IsEmpty());
  EXPECT_TRUE(core_->drained());
  EXPECT_EQ(core_->gpus()[0].slots_in_use, 0u);
  EXPECT_EQ(core_->instances()[0].state, InstanceState::kIdle);
  EXPECT_THAT(arrive(2, kA, 10s), ElementsAre("deliver invocation=2 instance=1"));
}

TEST_F(RequestDeadlines, WhatWaitsForAnInstanceToReturnExpiresToo) {
  run_first();
  answered(1, 2s);
  EXPECT_THAT(arrive_until(2, kA, 3s), IsEmpty());
  EXPECT_EQ(core_->gpus()[0].slots_in_use, 1u) << "it is bound to the instance that has not asked yet";
  EXPECT_THAT(wake(3s), ElementsAre("complete invocation=2 expired"));
  EXPECT_THAT(idle(1, 4s), IsEmpty());
  EXPECT_EQ(core_->gpus()[0].slots_in_use, 0u);
  EXPECT_THAT(arrive(3, kA, 5s), ElementsAre("deliver invocation=3 instance=1"));
}

TEST_F(RequestDeadlines, AnEventThatComesBeforeTheWakeUpDeliversNothingLate) {
  run_first();
  arrive_until(2, kA, 5s, 2s);
  EXPECT_THAT(answered(1, 6s), ElementsAre("complete invocation=1 success", "complete invocation=2 expired"));
  EXPECT_THAT(idle(1, 6s), IsEmpty());
  arrive_until(3, kB, 8s, 7s);
  EXPECT_THAT(ready(2, 8s), ElementsAre("complete invocation=3 expired")) << "ready at its deadline is too late";
  EXPECT_THAT(arrive_until(4, kA, 8s, 8s), ElementsAre("complete invocation=4 expired")) << "it came too late";
}

TEST_F(RequestDeadlines, WhatExpiredWhileItStartedCompletesOnceWhateverBecomesOfTheStart) {
  const auto expire_one = [&] {
    use({.slots_per_gpu = 1});
    add(kA);
    arrive_until(1, kA, 5s, 0s);
    EXPECT_THAT(wake(5s), ElementsAre("complete invocation=1 expired"));
  };
  expire_one();
  EXPECT_THAT(gone(1, 6s), IsEmpty());
  EXPECT_TRUE(core_->drained());
  expire_one();
  EXPECT_THAT(wake(60s), ElementsAre("stop instance=1 start_failed"));
  EXPECT_TRUE(core_->drained());
  expire_one();
  EXPECT_THAT(drain_gpu(1), ElementsAre("stop instance=1 gpu_drained"));
  EXPECT_TRUE(core_->drained());
  expire_one();
  EXPECT_THAT(remove(kA), ElementsAre(HasSubstr("stop instance=1")));
  EXPECT_TRUE(core_->drained());
  expire_one();
  EXPECT_THAT(shut_down(), ElementsAre(HasSubstr("stop instance=1")));
  EXPECT_TRUE(core_->drained());
  expire_one();
  update({.flow = kA});
  EXPECT_THAT(ready(1, 9s), ElementsAre(HasSubstr("stop instance=1"))) << "of the old code";
  EXPECT_TRUE(core_->drained());
}

TEST_F(RequestDeadlines, AStartAheadIsNobodysAndGoesOn) {
  use({.slots_per_gpu = 1, .starts_per_gpu = 1});
  add(kA);
  EXPECT_THAT(arrive_until(1, kA, 5s, 0s), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(wake(5s), ElementsAre("complete invocation=1 expired"));
  EXPECT_TRUE(core_->drained());
  EXPECT_THAT(ready(1, 9s), IsEmpty());
  EXPECT_THAT(arrive(2, kA, 10s), ElementsAre("deliver invocation=2 instance=1"));
}

TEST_F(RequestDeadlines, CancelledOrFailedCallsLeaveNoDeadlineBehind) {
  run_first();
  arrive_until(2, kA, 5s, 2s);
  EXPECT_THAT(cancel(2), ElementsAre("complete invocation=2 cancelled"));
  EXPECT_GT(core_->next_wakeup(), Instant(5s));
  EXPECT_THAT(wake(5s), IsEmpty());
}

}  // namespace
}  // namespace fairlead
