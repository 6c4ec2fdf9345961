// What bringing constants back to the device costs a kernel task, told to the policy as set-up of its flow.
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

constexpr FlowId kA(1), kB(2), kC(3);

// One GPU, one slot; instances 1, 2 and 3 of A, B and C are idle, each has run for a second.
class Reload : public CoreTest {
 protected:
  void SetUp() override {
    core_ = std::make_unique<Core>(CoreOptions{.slots_per_gpu = 1},
                                   policy_named("mqfq-setup", PolicyOptions().set(kOverRun, 10s)));
    core_->add_gpu({.gpu = GpuId(1)});
    for (const FlowId flow : {kA, kB, kC}) {
      add(flow);
      const std::uint64_t number = flow.value();
      arrive(number, flow);
      ready(number);
      answered(number, now_.time_since_epoch() + 1s);
      idle(number);
    }
  }
  void reload(std::uint64_t instance, Duration takes) { core_->set_reload(InstanceId(instance), takes); }
  // Which invocation is delivered after this one, which took a second.
  std::uint64_t end(std::uint64_t invocation, std::uint64_t instance) {
    std::uint64_t next = 0;
    const auto look = [&] {
      for (const Action& action : last_) {
        if (const auto* deliver = std::get_if<Deliver>(&action)) next = deliver->invocation.value();
      }
    };
    answered(invocation, now_.time_since_epoch() + 1s);
    look();
    idle(instance);
    look();
    return next;
  }
  // C runs, and holds the slot, while these wait.
  void queue_behind_c(std::initializer_list<std::pair<std::uint64_t, FlowId>> waiting) {
    EXPECT_THAT(arrive(100, kC), ElementsAre("deliver invocation=100 instance=3"));
    for (const auto& [invocation, flow] : waiting) EXPECT_THAT(arrive(invocation, flow), IsEmpty());
  }
};

TEST_F(Reload, TheFlowWhoseConstantsAreThereGoesFirst) {
  reload(1, 170ms);
  queue_behind_c({{4, kA}, {5, kB}});
  EXPECT_THAT(answered(100, now_.time_since_epoch() + 1s),
              ElementsAre("complete invocation=100 success", "deliver invocation=5 instance=2"));
}

TEST_F(Reload, WhatWasSaidLastCounts) {
  reload(1, 170ms);
  reload(2, 180ms);
  queue_behind_c({{4, kA}, {5, kB}});
  reload(1, 0s);  // while it waits: another call shares its constants
  reload(99, 1s);
  EXPECT_THAT(answered(100, now_.time_since_epoch() + 1s),
              ElementsAre("complete invocation=100 success", "deliver invocation=4 instance=1"));
}

// A call of two is worth a reload of less than twice as long.
TEST_F(Reload, IsSharedByWhatIsQueued) {
  reload(1, 300ms);
  reload(2, 200ms);
  queue_behind_c({{4, kA}, {5, kB}, {6, kA}});
  EXPECT_THAT(answered(100, now_.time_since_epoch() + 1s),
              ElementsAre("complete invocation=100 success", "deliver invocation=4 instance=1"));
}

TEST_F(Reload, TheWindowHolds) {
  reload(1, 170ms);
  queue_behind_c({});
  for (std::uint64_t i = 0; i < 40; ++i) {
    arrive(200 + i, kA);
    arrive(300 + i, kB);
  }
  std::uint64_t running = end(100, 3), of_b = 0;
  for (; running >= 300; ++of_b) running = end(running, 2);
  EXPECT_GE(running, 200u) << "A's turn";
  EXPECT_GE(of_b, 9u);
  EXPECT_LE(of_b, 12u) << "10 s ahead, and not further";
}

// Instances 1 and 4 of A: one of them has all it needs, so A costs nothing, and is given that one.
TEST_F(Reload, AnotherSpareInstanceMakesItNothing) {
  core_ = std::make_unique<Core>(CoreOptions{.slots_per_gpu = 2, .no_cold_duplicates = false},
                                 policy_named("mqfq-setup", PolicyOptions().set(kOverRun, 10s)));
  core_->add_gpu({.gpu = GpuId(1)});
  for (const FlowId flow : {kA, kB}) add(flow);
  arrive(1, kA);
  arrive(2, kA);
  ready(1);
  ready(2);
  answered(1, now_.time_since_epoch() + 1s);
  answered(2);
  idle(1);
  idle(2);
  arrive(3, kB);
  arrive(4, kB);
  ready(3);
  ready(4);
  reload(1, 0s);
  reload(2, 170ms);
  reload(3, 100ms);
  reload(4, 100ms);
  EXPECT_THAT(arrive(5, kB), IsEmpty());
  EXPECT_THAT(arrive(6, kA), IsEmpty());
  EXPECT_THAT(answered(3, now_.time_since_epoch() + 1s),
              ElementsAre("complete invocation=3 success", "deliver invocation=6 instance=1"));
}

}  // namespace
}  // namespace fairlead
