#include "decide/core/runs.h"

#include "decide/core/core_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::ElementsAre;

class RunsTest : public CoreParts {
 protected:
  RunsTest() : CoreParts({.starts_per_gpu = 1, .task_lanes = 2, .task_loads_per_gpu = 1}) {
    add_gpu();
    lanes.add({.gpu = kGpu});
    add({.flow = kA, .timeout = 60s});
    add({.flow = kB, .timeout = 60s, .is_kernel_task = true});
  }
  Complete completed() const { return std::get<Complete>(out.back()); }
};

TEST_F(RunsTest, ARunEndsAtTheSoonerOfItsTimeoutAndItsCallersDeadline) {
  arrive(1, kA);
  run(idle(kA));
  EXPECT_EQ(std::get<Deliver>(out.back()).deadline, Instant(60s));
  arrive(2, kA, Instant(20s));
  run(idle(kA));
  EXPECT_EQ(std::get<Deliver>(out.back()).deadline, Instant(20s));
  EXPECT_EQ(keeper.next_deadline(), Instant(20s));
}

TEST(BoundedUse, ATenthOfTheTimeHeldIsChargedAtLeastAndAllOfItAtMost) {
  EXPECT_EQ(bounded_use(Duration(50ms), 2s), Duration(200ms));
  EXPECT_EQ(bounded_use(Duration(1s), 2s), Duration(1s));
  EXPECT_EQ(bounded_use(Duration(9s), 2s), Duration(2s));
  EXPECT_EQ(bounded_use(std::nullopt, 2s), Duration(2s));
}

TEST_F(RunsTest, WhatTheFlowOwesIsAddedOnceBeyondTheBound) {
  tables.functions.at(kA).owed = 5s;
  arrive(1, kA);
  Instance& instance = idle(kA);
  const InvocationId first = run(instance);
  pass(2s);
  runs.end(now, first, OutcomeKind::kSuccess, Duration(1s), out);
  EXPECT_EQ(completed().service, Duration(6s));
  EXPECT_EQ(completed().owed, Duration(5s));
  EXPECT_EQ(tables.functions.at(kA).owed, Duration(0));
}

TEST_F(RunsTest, WhatAnsweredEarlyIsChargedForAllItsWorkAtTheEnd) {
  arrive(1, kA);
  Instance& instance = idle(kA);
  const InvocationId id = run(instance);
  pass(1s);
  tables.pool.take(instance, InstanceEvent::kAnswered);
  runs.answer_early(now, id, false, 300ms, out);
  EXPECT_EQ(completed().service, Duration(300ms));
  pass(3s);
  runs.end(now, id, OutcomeKind::kSuccess, Duration(2s), out);
  EXPECT_EQ(std::get<Charge>(out.back()), (Charge{id, kA, 2s, 1700ms}));
}

TEST_F(RunsTest, WhoseFunctionIsNotThereAnyMoreIsNotCharged) {
  arrive(1, kA);
  Instance& instance = idle(kA);
  const InvocationId id = run(instance);
  pass(1s);
  tables.queue->remove_flow(kA);
  tables.functions.erase(kA);
  runs.end(now, id, OutcomeKind::kSuccess, std::nullopt, out);
  EXPECT_EQ(completed().service, Duration(1s));
}

// A request of 40 %, 2 s held, 1 s used: 800 ms were paid for.
TEST_F(RunsTest, WhatARequestHasPaidForCostsNoVirtualTime) {
  arrive(1, kA);
  Instance& seat = idle(kA);
  const InvocationId id = run(seat);
  tables.pool.set_terms(seat, {.is_seated = true, .is_entitled = true, .request_percent = 40});
  const Duration before = tables.queue->view(kA).virtual_time;
  pass(2s);
  runs.end(now, id, OutcomeKind::kSuccess, Duration(1s), out);
  EXPECT_EQ(completed().service, Duration(1s)) << "that is what it used";
  EXPECT_LE(tables.queue->view(kA).virtual_time - before, Duration(200ms));
}

class Loads : public RunsTest {
 protected:
  // One whose data is away: bringing it takes 1 s.
  Instance& loads() {
    Instance& session = idle(kB);
    keeper.set_reload(session.id, 1s);
    arrive(1, kB);
    run(session);
    EXPECT_TRUE(session.life.loads());
    return session;
  }
};

TEST_F(Loads, AfterTheLoadItHasTheDeadlineOfItsRun) {
  Instance& session = loads();
  EXPECT_EQ(keeper.next_deadline(), Instant(4s)) << "four times what the load should take";
  pass(1s);
  runs.loaded(now, session);
  EXPECT_EQ(keeper.next_deadline(), Instant(60s));
  EXPECT_FALSE(session.life.loads());
  EXPECT_FALSE(runs.outlasts_load(now, session)) << "from here on it is the run that is overdue";
}

TEST_F(Loads, ALoadThatTakesTooLongGoesOnInALaneOnce) {
  Instance& session = loads();
  pass(4s);
  EXPECT_TRUE(runs.outlasts_load(now, session));
  EXPECT_EQ(keeper.next_deadline(), Instant(60s));
  EXPECT_EQ(runs.loads_given_up(), 1u);
  EXPECT_FALSE(runs.outlasts_load(now, session));
}

TEST_F(Loads, WhoseTimeIsOverDoesNotOutlastItsLoad) {
  Instance& session = loads();
  pass(60s);
  EXPECT_FALSE(runs.outlasts_load(now, session));
  EXPECT_EQ(runs.loads_given_up(), 0u);
}

}  // namespace
}  // namespace fairlead
