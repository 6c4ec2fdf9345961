#include "decide/core/flow_news.h"

#include "decide/core/core_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class FlowNewsTest : public CoreParts {
 protected:
  FlowNewsTest() : CoreParts({.starts_per_gpu = 2}) {
    add_gpu(kGpu);
    add_gpu(kOther);
    add({.flow = kA});
    tables.functions.at(kA).cold_start.learn(9s);
  }
  Duration told_setup() const { return tables.functions.at(kA).told_setup; }
  Supply told_supply() const { return tables.functions.at(kA).told_supply; }
};

TEST_F(FlowNewsTest, WhatTheNextInvocationWaitsForIsTheQuickestSpareInstance) {
  news.note_setup(kA);
  EXPECT_EQ(told_setup(), Duration(9s)) << "none is there: a cold start";
  Instance& slow = idle(kA);
  Instance& quick = idle(kA, kOther);
  slow.reload = 3s, quick.reload = 1s;
  news.note_setup(kA);
  EXPECT_EQ(told_setup(), Duration(1s));
  arrive(1, kA);
  tables.pool.bind(quick, InvocationId(1));
  news.note_setup(kA);
  EXPECT_EQ(told_setup(), Duration(3s)) << "the quick one is taken";
}

TEST_F(FlowNewsTest, AnEntitledInstanceIsNobodysToWaitFor) {
  Instance& seat = idle(kA);
  tables.pool.set_terms(seat, {.is_seated = true, .is_entitled = true});
  news.note_setup(kA);
  EXPECT_EQ(told_setup(), Duration(9s));
}

TEST_F(FlowNewsTest, SupplyIsNoneThenStartingThenReady) {
  news.note_supply(kA);
  EXPECT_EQ(told_supply(), Supply::kNone);
  Instance& instance = start(kA);
  EXPECT_EQ(told_supply(), Supply::kStarting);
  tables.pool.take(instance, InstanceEvent::kReady);
  news.note_supply(kA);
  EXPECT_EQ(told_supply(), Supply::kReady);
  keeper.evict(now, instance.id, out);
  EXPECT_EQ(told_supply(), Supply::kNone);
}

TEST_F(FlowNewsTest, OneThatRetiresIsNoSupply) {
  Instance& instance = idle(kA);
  arrive(1, kA);
  run(instance);
  tables.pool.take(instance, InstanceEvent::kRetired);
  news.note_supply(kA);
  EXPECT_EQ(told_supply(), Supply::kNone);
}

TEST_F(FlowNewsTest, PlacesAreToldWhereDataStaysAndTakenBack) {
  tables.functions.at(kA).keeps_data = true;
  Instance& here = idle(kA, kGpu);
  here.reload = 2s;
  const InstanceId there = idle(kA, kOther).id;
  news.note_setup(kA);
  EXPECT_EQ(tables.functions.at(kA).told_places, (std::map<GpuId, Duration>{{kGpu, 2s}, {kOther, 0s}}));
  keeper.evict(now, there, out);
  EXPECT_EQ(tables.functions.at(kA).told_places, (std::map<GpuId, Duration>{{kGpu, 2s}}));
}

TEST_F(FlowNewsTest, SetUpOnAGpuCountsBusyInstancesAndIsNeverNothingForAColdStart) {
  EXPECT_EQ(setup_on(tables, kA, kGpu), Duration(9s));
  Instance& instance = idle(kA);
  arrive(1, kA);
  run(instance);
  EXPECT_EQ(setup_on(tables, kA, kGpu), Duration(0));
  add({.flow = kB});
  EXPECT_GT(setup_on(tables, kB, kGpu), Duration(0)) << "nobody knows how long it starts";
}

TEST_F(FlowNewsTest, AFunctionRunsInSeatsAloneWhileOneOfThemServes) {
  const FlowSpec seated{.flow = kB, .seats = {kGpu}, .most_instances = 1, .request_percent = 40};
  add(seated);
  EXPECT_FALSE(runs_in_seats_alone(tables, seated)) << "none is there";
  tables.pool.set_terms(start(kB), {.is_seated = true, .is_entitled = true, .request_percent = 40});
  EXPECT_TRUE(runs_in_seats_alone(tables, seated));
  FlowSpec more = seated;
  more.most_instances = 2;
  EXPECT_FALSE(runs_in_seats_alone(tables, more)) << "one may be beyond its seats";
  tables.pool.set_serves(kGpu, false);
  EXPECT_FALSE(runs_in_seats_alone(tables, seated));
}

TEST(LearntTime, ANewStartCountsATenth) {
  LearntTime start;
  EXPECT_EQ(start.known(), std::nullopt);
  EXPECT_EQ(start.or_nothing(), Duration(0));
  start.learn(10s);
  EXPECT_EQ(start.known(), Duration(10s));
  start.learn(20s);
  EXPECT_EQ(start.known(), Duration(11s));
}

}  // namespace
}  // namespace fairlead
