// Lanes of kernel tasks: more of their calls at once than of programs, loads that hold none, programs that are never kept out.
#include <gmock/gmock.h>

#include "decide/core/core_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::CoreTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::policy_named;

// One GPU, two slots.
class TaskLanesOfAGpu : public CoreTest {
 protected:
  void use(CoreOptions options) {
    if (options.starts_per_gpu == 0) options.starts_per_gpu = 4;
    core_ = std::make_unique<Core>(options, policy_named("mqfq-setup"));
    core_->add_gpu({.gpu = GpuId(1)});
  }
  // Flow and instance of that number, idle: a session whose next call first loads for so long.
  void session(std::uint64_t number, Duration reload = 0s) {
    core_->add_function({.flow = FlowId(number), .is_kernel_task = true});
    start(number);
    set_reload(number, reload);
  }
  void program(std::uint64_t number) {
    add(FlowId(number));
    start(number);
  }
  void set_reload(std::uint64_t instance, Duration reload) {
    core_->set_residence(InstanceId(instance), {.missing = mib(reload > 0s ? 1 : 0), .reload = reload});
  }
  void start(std::uint64_t number) {
    core_->prepare(FlowId(number));
    EXPECT_THAT(wake(now_.time_since_epoch()),
                ElementsAre("start instance=" + std::to_string(number) + " flow=" + std::to_string(number) + " gpu=1"));
    EXPECT_THAT(ready(number), IsEmpty());
  }
  Lines loaded(std::uint64_t invocation, std::optional<Duration> at = {}) {
    if (at) now_ = Instant(*at);
    last_.clear();
    core_->loaded(now_, InvocationId(invocation), last_);
    Lines all;
    for (const Action& action : last_) all.push_back(testing::brief(action));
    return all;
  }
  // Invocations have the number of their flow and instance.
  std::string delivered(std::uint64_t number) {
    return "deliver invocation=" + std::to_string(number) + " instance=" + std::to_string(number);
  }
  std::string completed(std::uint64_t number) { return "complete invocation=" + std::to_string(number) + " success"; }
  GpuView gpu() { return core_->gpus().front(); }
};

TEST_F(TaskLanesOfAGpu, AreAsManyAsAreGiven) {
  use({.task_lanes = 3});
  for (const std::uint64_t n : {1, 2, 3, 4}) session(n);
  for (const std::uint64_t n : {1, 2, 3}) EXPECT_THAT(arrive(n, FlowId(n)), ElementsAre(delivered(n)));
  EXPECT_THAT(arrive(4, FlowId(4)), IsEmpty());
  EXPECT_THAT(answered(2, 1s), ElementsAre(completed(2), delivered(4)));
}

TEST_F(TaskLanesOfAGpu, AreTheSlotsWhereNobodyGivesAny) {
  use({});
  for (const std::uint64_t n : {1, 2, 3}) session(n);
  for (const std::uint64_t n : {1, 2}) EXPECT_THAT(arrive(n, FlowId(n)), ElementsAre(delivered(n)));
  EXPECT_THAT(arrive(3, FlowId(3)), IsEmpty());
}

// Its server may say so of a call that waits for its session to return.
TEST_F(TaskLanesOfAGpu, ALoadThatEndsBeforeItsDeliveryIsNone) {
  use({.most_task_lanes = 4, .task_loads_per_gpu = 1});
  session(1, 100ms);
  EXPECT_THAT(arrive(1, FlowId(1), 0s), ElementsAre(delivered(1)));
  EXPECT_THAT(loaded(1, 100ms), IsEmpty());
  EXPECT_THAT(answered(1, 200ms), ElementsAre(completed(1)));
  set_reload(1, 100ms);
  EXPECT_THAT(arrive(2, FlowId(1)), IsEmpty()) << "bound to the session, which has yet to ask";
  EXPECT_THAT(loaded(2), IsEmpty());
  EXPECT_THAT(idle(1), ElementsAre("deliver invocation=2 instance=1"));
  EXPECT_THAT(loaded(2, 300ms), IsEmpty());
  EXPECT_THAT(answered(2, 400ms), ElementsAre("complete invocation=2 success"));
}

TEST_F(TaskLanesOfAGpu, AreNotOfPrograms) {
  use({.task_lanes = 4});
  for (const std::uint64_t n : {1, 2, 3}) program(n);
  for (const std::uint64_t n : {1, 2}) EXPECT_THAT(arrive(n, FlowId(n)), ElementsAre(delivered(n)));
  EXPECT_THAT(arrive(3, FlowId(3)), IsEmpty());
}

TEST_F(TaskLanesOfAGpu, AProgramThatWaitsIsNotOvertakenByMoreLanes) {
  use({.task_lanes = 4});
  for (const std::uint64_t n : {1, 2, 3, 4}) session(n);
  program(5);
  for (const std::uint64_t n : {1, 2, 3}) EXPECT_THAT(arrive(n, FlowId(n)), ElementsAre(delivered(n)));
  EXPECT_THAT(arrive(5, FlowId(5)), IsEmpty()) << "three hold the two slots";
  EXPECT_THAT(arrive(4, FlowId(4)), IsEmpty()) << "there is a lane, and a program waits";
  EXPECT_EQ(gpu().task_lanes, 2u);
  EXPECT_THAT(answered(1, 1s), ElementsAre(completed(1)));
  EXPECT_THAT(answered(2, 2s), ::testing::SizeIs(2)) << "one has the slot, which of the two is the policy's affair";
}

TEST_F(TaskLanesOfAGpu, ReturnWhenTheProgramIsDone) {
  use({.task_lanes = 3});
  for (const std::uint64_t n : {1, 2, 3}) session(n);
  program(4);
  EXPECT_THAT(arrive(4, FlowId(4)), ElementsAre(delivered(4)));
  EXPECT_THAT(arrive(1, FlowId(1)), ElementsAre(delivered(1)));
  EXPECT_THAT(arrive(2, FlowId(2)), IsEmpty());
  EXPECT_THAT(answered(4, 1s), ElementsAre(completed(4), delivered(2)));
  EXPECT_THAT(arrive(3, FlowId(3)), ElementsAre(delivered(3)));
}

TEST_F(TaskLanesOfAGpu, WhoLoadsHoldsNone) {
  use({.task_loads_per_gpu = 1});
  for (const std::uint64_t n : {1, 2}) session(n);
  session(3, 100ms);
  for (const std::uint64_t n : {1, 2}) EXPECT_THAT(arrive(n, FlowId(n)), ElementsAre(delivered(n)));
  EXPECT_THAT(arrive(3, FlowId(3)), ElementsAre(delivered(3))) << "both lanes are taken, and it computes nothing yet";
  EXPECT_EQ(gpu().task_loads, 1u);
  EXPECT_THAT(answered(1, 1s), ElementsAre(completed(1)));
  idle(1);
  EXPECT_THAT(arrive(11, FlowId(1)), ElementsAre("deliver invocation=11 instance=1"));
}

TEST_F(TaskLanesOfAGpu, WhoHasLoadedTakesOneAndTheNextWaits) {
  use({.task_loads_per_gpu = 1});
  for (const std::uint64_t n : {1, 2, 3, 4}) session(n);
  set_reload(3, 100ms);
  for (const std::uint64_t n : {3, 1, 2}) EXPECT_THAT(arrive(n, FlowId(n)), ElementsAre(delivered(n)));
  set_reload(3, 0s);  // as the device server says when the load has begun
  EXPECT_THAT(loaded(3, 100ms), IsEmpty());
  EXPECT_EQ(gpu().task_loads, 0u);
  EXPECT_THAT(arrive(4, FlowId(4)), IsEmpty());
  EXPECT_THAT(answered(1, 200ms), ElementsAre(completed(1))) << "three computed on two lanes";
  EXPECT_THAT(answered(2, 200ms), ElementsAre(completed(2), delivered(4)));
}

TEST_F(TaskLanesOfAGpu, OneLoadsAtATime) {
  use({.task_loads_per_gpu = 1});
  for (const std::uint64_t n : {1, 2}) session(n, 100ms);
  EXPECT_THAT(arrive(1, FlowId(1)), ElementsAre(delivered(1)));
  EXPECT_THAT(arrive(2, FlowId(2)), IsEmpty());
  EXPECT_THAT(loaded(1, 100ms), ElementsAre(delivered(2)));
  EXPECT_THAT(loaded(1, 100ms), IsEmpty()) << "said twice";
  EXPECT_THAT(loaded(77), IsEmpty()) << "of no invocation";
}

// Its data may wait for what never comes. The call has its time all the same.
TEST_F(TaskLanesOfAGpu, ALoadThatDoesNotEndHoldsUpNoOtherForLong) {
  use({.task_loads_per_gpu = 1});
  for (const std::uint64_t n : {1, 2}) session(n, 100ms);
  session(3, 2s);
  EXPECT_THAT(arrive(1, FlowId(1), 0s), ElementsAre(delivered(1)));
  EXPECT_THAT(arrive(3, FlowId(3), 0s), IsEmpty());
  EXPECT_THAT(wake(2s - 1ns), IsEmpty());
  EXPECT_THAT(wake(2s), ElementsAre(delivered(3))) << "twenty times as long as it should take";
  EXPECT_EQ(gpu().task_loads, 1u);
  EXPECT_THAT(arrive(2, FlowId(2), 2s), IsEmpty()) << "now that one loads";
  EXPECT_THAT(wake(10s - 1ns), IsEmpty());
  EXPECT_THAT(wake(10s), ElementsAre(delivered(2))) << "four times as long";
  EXPECT_THAT(loaded(1, 20s), IsEmpty()) << "late";
  EXPECT_THAT(answered(1, 30s), ElementsAre(completed(1)));
  idle(1);
  EXPECT_THAT(wake(62s - 1ns), IsEmpty());
  EXPECT_EQ(core_->counters().loads_given_up, 3u);
  EXPECT_THAT(wake(62s), ElementsAre("stop instance=3 timeout", "complete invocation=3 timeout"));
}

TEST_F(TaskLanesOfAGpu, WhoLoadsHoldsOneWhereLoadsHaveNoLane) {
  use({});
  session(1, 100ms);
  for (const std::uint64_t n : {2, 3}) session(n);
  for (const std::uint64_t n : {1, 2}) EXPECT_THAT(arrive(n, FlowId(n)), ElementsAre(delivered(n)));
  EXPECT_THAT(arrive(3, FlowId(3)), IsEmpty());
}

// Its second session would hold a lane and wait for the load of the first.
TEST_F(TaskLanesOfAGpu, DataOnItsWayIsWaitedForInTheQueue) {
  use({.task_loads_per_gpu = 1});
  session(1, 100ms);
  EXPECT_THAT(arrive(1, FlowId(1)), ElementsAre(delivered(1)));
  EXPECT_THAT(arrive(2, FlowId(1)), ElementsAre("start instance=2 flow=1 gpu=1"));
  EXPECT_THAT(ready(2), IsEmpty());
  set_reload(1, 0s);
  set_reload(2, 0s);
  EXPECT_THAT(wake(50ms), IsEmpty());
  EXPECT_THAT(loaded(1, 100ms), ElementsAre("deliver invocation=2 instance=2"));
}

TEST_F(TaskLanesOfAGpu, WhoEndsWhileItLoadsLeavesTheLoadToTheNext) {
  use({.task_loads_per_gpu = 1});
  for (const std::uint64_t n : {1, 2}) session(n, 100ms);
  arrive(1, FlowId(1));
  arrive(2, FlowId(2));
  EXPECT_THAT(gone(1, 50ms), ElementsAre("complete invocation=1 crashed", delivered(2)));
  EXPECT_EQ(gpu().task_loads, 1u);
}

// A program in turn: what loads takes a slot of two, as everything does.
TEST_F(TaskLanesOfAGpu, WhoLoadsHoldsASlotWhileAProgramHasItsTurn) {
  use({.task_lanes = 4, .task_loads_per_gpu = 1});
  for (const std::uint64_t n : {1, 2}) session(n, 100ms);
  program(3);
  EXPECT_THAT(arrive(3, FlowId(3)), ElementsAre(delivered(3)));
  EXPECT_THAT(arrive(1, FlowId(1)), ElementsAre(delivered(1)));
  EXPECT_EQ(gpu().task_loads, 0u);
  EXPECT_THAT(arrive(2, FlowId(2)), IsEmpty());
}

TEST_F(TaskLanesOfAGpu, FollowWhatCallsTakeBesideEachOther) {
  use({.most_task_lanes = 8});
  for (std::uint64_t n = 1; n <= 6; ++n) session(n);
  EXPECT_EQ(gpu().task_lanes, 2u);
  Duration at = 1s;
  std::uint64_t next = 100;
  for (int round = 0; round < 200; ++round) {  // as many as there are lanes, each takes 40 ms beside up to three others
    std::vector<std::pair<std::uint64_t, std::uint64_t>> running;
    const std::size_t lanes = gpu().task_lanes;
    for (std::uint64_t n = 1; n <= std::min<std::size_t>(6, lanes); ++n) {
      EXPECT_THAT(arrive(next, FlowId(n), at), ::testing::SizeIs(1));
      running.emplace_back(next++, n);
    }
    at += 10ms * std::max<std::size_t>(4, running.size());
    for (const auto& [invocation, instance] : running) {
      answered(invocation, at);
      idle(instance, at);
    }
  }
  EXPECT_EQ(gpu().task_lanes, 4u);
}

TEST_F(TaskLanesOfAGpu, AreTheSlotsWhereAStartHoldsOne) {
  CoreOptions options{.task_lanes = 4};
  core_ = std::make_unique<Core>(options, policy_named("mqfq-setup"));
  core_->add_gpu({.gpu = GpuId(1)});
  EXPECT_EQ(gpu().task_lanes, 2u);
}

TEST_F(TaskLanesOfAGpu, AreTheSlotsOnAGpuThatHasNone) {
  use({.task_lanes = 4});
  core_->add_gpu({.gpu = GpuId(2), .slots = 1, .has_task_lanes = false});
  EXPECT_EQ(core_->gpus().back().task_lanes, 1u);
}

TEST_F(TaskLanesOfAGpu, AreMeasuredAnewFromAnotherD) {
  use({.most_task_lanes = 4});
  EXPECT_EQ(gpu().task_lanes, 2u);
  set_slots(1, 6);
  EXPECT_EQ(gpu().task_lanes, 6u) << "at least as many as slots";
  set_slots(1, 1);
  EXPECT_EQ(gpu().task_lanes, 1u);
}

TEST(TaskLanesOptions, MustHaveInstances) {
  EXPECT_EQ(validate({.instances_per_gpu = 4, .task_lanes = 5}).error().message,
            "instances_per_gpu is 4, it must be at least the lanes of kernel tasks, 5");
  EXPECT_FALSE(validate({.instances_per_gpu = 4, .most_task_lanes = 5}));
  EXPECT_TRUE(validate({.instances_per_gpu = 8, .most_task_lanes = 8}));
}

}  // namespace
}  // namespace fairlead
