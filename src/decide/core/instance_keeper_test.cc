#include "decide/core/instance_keeper.h"

#include "decide/core/core_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::ElementsAre;

class InstanceKeeperTest : public CoreParts {
 protected:
  InstanceKeeperTest() : CoreParts({.starts_per_gpu = 2}) {
    add_gpu(kGpu, 2, gib(16));
    add({.flow = kA});
  }
};

TEST_F(InstanceKeeperTest, OneThatStartsIsKnownEverywhereAndHasADeadline) {
  const InstanceId id = start(kA).id;
  EXPECT_THAT(taken(), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_NE(residency.state(id), nullptr);
  EXPECT_EQ(tables.functions.at(kA).told_supply, Supply::kStarting);
  EXPECT_EQ(keeper.next_deadline(), Instant(60s));
  EXPECT_EQ(keeper.overdue(Instant(59s)), std::nullopt);
  EXPECT_EQ(keeper.overdue(Instant(60s)), id);
  EXPECT_EQ(keeper.started(), 1u);
}

TEST_F(InstanceKeeperTest, OneThatIsEvictedIsForgottenAndItsMemoryCountsUntilItIsGone) {
  const InstanceId id = idle(kA).id;
  taken();
  keeper.evict(now, id, out);
  EXPECT_THAT(taken(), ElementsAre("stop instance=1 evicted"));
  EXPECT_EQ(tables.pool.find(id), nullptr);
  ASSERT_NE(residency.state(id), nullptr);
  EXPECT_TRUE(residency.state(id)->stopping());
  EXPECT_EQ(tables.functions.at(kA).told_supply, Supply::kNone);
  EXPECT_EQ(keeper.next_deadline(), Instant::max());
  EXPECT_EQ(keeper.evicted(), 1u);
}

TEST_F(InstanceKeeperTest, OneThatIsKilledIsThereUntilItIsForgotten) {
  const InstanceId id = start(kA).id;
  keeper.kill(now, id, StopReason::kStartFailed, out);
  EXPECT_NE(tables.pool.find(id), nullptr) << "what is bound to it is yet to end";
  keeper.forget(id);
  EXPECT_EQ(tables.pool.find(id), nullptr);
  EXPECT_EQ(keeper.next_deadline(), Instant::max()) << "nobody is overdue who is not there";
  EXPECT_EQ(keeper.evicted(), 0u);
}

TEST_F(InstanceKeeperTest, OneThatRestsGivesItsSlotBackAndHasTimeToAsk) {
  Instance& instance = idle(kA);
  arrive(1, kA);
  const InvocationId ran = run(instance);
  EXPECT_EQ(tables.pool.slots_in_use(), 1u);
  pass(2s);
  runs.end(now, ran, OutcomeKind::kSuccess, std::nullopt, out);
  keeper.rest(now, instance);
  EXPECT_EQ(tables.pool.slots_in_use(), 0u);
  EXPECT_EQ(instance.last_used, now);
  EXPECT_EQ(keeper.next_deadline(), now + tables.options.return_deadline);
  EXPECT_TRUE(residency.state(instance.id)->idle());
}

TEST_F(InstanceKeeperTest, AReloadIsToldTheQueueAndMeansThatDataStays) {
  const InstanceId id = idle(kA).id;
  keeper.set_reload(id, 3s);
  EXPECT_TRUE(tables.functions.at(kA).keeps_data);
  EXPECT_EQ(tables.functions.at(kA).told_setup, Duration(3s));
  keeper.set_reload(InstanceId(99), 5s);
  EXPECT_EQ(tables.functions.at(kA).told_setup, Duration(3s));
}

TEST_F(InstanceKeeperTest, WhatAReportShowsIsWhatPlacementCounts) {
  Instance& instance = idle(kA);
  residency.report(instance.id, {.held = gib(3), .resident = gib(1), .away = gib(2), .fixed = gib(1)});
  keeper.count_memory(instance);
  EXPECT_EQ(instance.needed, gib(3));
  EXPECT_EQ(instance.pinned, gib(1));
  EXPECT_GT(instance.reload, Duration(0)) << "what is away must come back first";
  EXPECT_EQ(tables.functions.at(kA).told_setup, instance.reload);
}

}  // namespace
}  // namespace fairlead
