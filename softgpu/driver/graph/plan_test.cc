// Plans: the example of the header, and that no plan loses an order.
#include "softgpu/driver/graph/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace {

using softgpu::graph::kMaxLanes;
using softgpu::graph::make_plan;
using softgpu::graph::Plan;
using softgpu::graph::PlanStep;
using softgpu::graph::Segment;

std::vector<PlanStep> steps_after(std::vector<std::vector<std::size_t>> after) {
  std::vector<PlanStep> steps;
  for (auto& list : after) steps.push_back({std::move(list)});
  return steps;
}

TEST(Plan, AChainIsOneSegment) {
  std::vector<PlanStep> steps(100);
  for (std::size_t i = 1; i < steps.size(); ++i) steps[i].after = {i - 1};
  const Plan plan = make_plan(steps);
  EXPECT_EQ(plan.segments.size(), 1U);
  EXPECT_EQ(plan.lanes, 1U);
}

TEST(Plan, ADiamondForksAndJoins) {
  const Plan plan = make_plan(steps_after({{}, {0}, {0}, {1, 2}}));
  ASSERT_EQ(plan.segments.size(), 4U);
  EXPECT_EQ(plan.lanes, 2U);
  EXPECT_EQ(plan.segments[2].lane, 1U);
  EXPECT_EQ(plan.segments[2].after, (std::vector<std::size_t>{0}));
  EXPECT_EQ(plan.segments[3].lane, 0U);
  EXPECT_EQ(plan.segments[3].after, (std::vector<std::size_t>{2}));
}

TEST(Plan, StepsThatTouchTheOutsideEndOrBeginASegment) {
  std::vector<PlanStep> steps = steps_after({{}, {0}, {1}, {2}});
  steps[1].ends_segment = true;
  steps[3].begins_segment = true;
  const Plan plan = make_plan(steps);
  ASSERT_EQ(plan.segments.size(), 3U);
  EXPECT_EQ(plan.segments[0].steps, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(plan.segments[1].steps, (std::vector<std::size_t>{2}));
}

TEST(Plan, AnEmptyGraphHasALaneAndNoSegments) {
  EXPECT_EQ(make_plan({}).lanes, 1U);
  EXPECT_TRUE(make_plan({}).segments.empty());
}

// Executes the plan lane by lane in a random interleaving that respects what segments wait for.
std::vector<std::size_t> execute(const Plan& plan, std::mt19937& random) {
  std::vector<std::size_t> done_steps;
  std::set<std::size_t> done;
  while (done.size() < plan.segments.size()) {
    std::vector<std::size_t> ready;
    std::set<std::size_t> blocked_lanes;
    for (std::size_t i = 0; i < plan.segments.size(); ++i) {
      const Segment& segment = plan.segments[i];
      if (done.contains(i)) continue;
      const bool free = std::all_of(segment.after.begin(), segment.after.end(),
                                    [&](std::size_t before) { return done.contains(before); });
      if (free && !blocked_lanes.contains(segment.lane)) ready.push_back(i);
      blocked_lanes.insert(segment.lane);
    }
    EXPECT_FALSE(ready.empty()) << "the plan waits for itself";
    if (ready.empty()) break;
    const std::size_t next = ready[random() % ready.size()];
    done.insert(next);
    done_steps.insert(done_steps.end(), plan.segments[next].steps.begin(), plan.segments[next].steps.end());
  }
  return done_steps;
}

TEST(Plan, EveryExecutionOfRandomPlansRespectsEveryDependency) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<PlanStep> steps(1 + random() % 40);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (std::size_t before = 0; before < i; ++before) {
        if (random() % 8 == 0) steps[i].after.push_back(before);
      }
      steps[i].ends_segment = random() % 10 == 0;
      steps[i].begins_segment = random() % 10 == 0;
    }
    const Plan plan = make_plan(steps);
    EXPECT_LE(plan.lanes, kMaxLanes);
    const std::vector<std::size_t> order = execute(plan, random);
    ASSERT_EQ(order.size(), steps.size());
    std::vector<std::size_t> place(steps.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const std::size_t before : steps[i].after) EXPECT_LT(place[before], place[i]);
    }
  }
}

}  // namespace
