#include "decide/core/flow_outlook.h"

#include "decide/core/core_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class FlowOutlookTest : public CoreParts {
 protected:
  explicit FlowOutlookTest(EvictionKind kind = EvictionKind::kLru) : CoreParts({.eviction = kind}) {
    add_gpu();
    add({.flow = kA});
    add({.flow = kB, .seats = {kGpu}});
  }
};

TEST_F(FlowOutlookTest, WorkThatWaitsClaimsMoreThanWorkThatMayCome) {
  EXPECT_EQ(outlook.demand_of(kA).claim, Claim::kLeaving) << "nobody has called it";
  arrive(1, kA);
  EXPECT_EQ(outlook.demand_of(kA).claim, Claim::kQueued);
  EXPECT_EQ(outlook.demand_of(kA).queued, 1u);
  EXPECT_EQ(outlook.demand_of(FlowId(9)).claim, Claim::kLeaving) << "it is not there";
}

TEST_F(FlowOutlookTest, AFunctionWithSeatsKeepsItsMemory) {
  EXPECT_EQ(outlook.demand_of(kB).claim, Claim::kKept);
}

TEST_F(FlowOutlookTest, WhoSitsMayNotBeStopped) {
  Instance& instance = idle(kA);
  EXPECT_TRUE(outlook.may_stop(instance.id));
  tables.pool.set_terms(instance, {.is_seated = true});
  EXPECT_FALSE(outlook.may_stop(instance.id));
}

TEST_F(FlowOutlookTest, TheLeastRecentlyUsedIsMissedLeast) {
  const InstanceId first = idle(kA).id;
  pass(1s);
  const InstanceId second = idle(kB).id;
  EXPECT_EQ(outlook.cheapest_to_stop({second, first}), first);
}

TEST_F(FlowOutlookTest, AGapIsNeverNothingAndOfWhoIsNotThereNeverOver) {
  EXPECT_EQ(outlook.expected_gap(FlowId(9)), ArrivalPace::kNeverCalled);
  EXPECT_GT(outlook.expected_gap(kA), Duration(0));
  EXPECT_EQ(outlook.cold_start(FlowId(9)), Duration(0));
  EXPECT_EQ(outlook.instances(kA), 1u) << "as one that comes back";
  idle(kA);
  idle(kA);
  EXPECT_EQ(outlook.instances(kA), 2u);
}

class CostOutlook : public FlowOutlookTest {
 protected:
  CostOutlook() : FlowOutlookTest(EvictionKind::kCost) {}
};

TEST_F(CostOutlook, WhatStartsQuicklyIsMissedLeastThoughItWasUsedLast) {
  const InstanceId slow = idle(kA).id;
  pass(1s);
  const InstanceId quick = idle(kB).id;
  tables.functions.at(kA).cold_start.learn(12s);
  tables.functions.at(kB).cold_start.learn(100ms);
  EXPECT_EQ(outlook.cheapest_to_stop({slow, quick}), quick);
}

}  // namespace
}  // namespace fairlead
