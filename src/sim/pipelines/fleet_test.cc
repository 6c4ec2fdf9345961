// Functions under bursts: the same seed gives the same run, the order of the queue decides, pipelines use what whole functions cannot.
#include "sim/pipelines/fleet.h"

#include <gtest/gtest.h>

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

FleetOptions six(const char* variant, double load) {
  FleetOptions options;
  for (const std::size_t which : {0, 1, 2, 0, 1, 2}) options.functions.push_back(applications(variant)[which]);
  options.load = load;
  options.length = 60s;
  return options;
}

TEST(Fleet, TheSameSeedGivesTheSameRun) {
  FleetOptions options = six("large", 0.5);
  const auto first = run_fleet(options), second = run_fleet(options);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->state_hash, second->state_hash);
  EXPECT_GT(first->requests, 500u);
  options.seed = 2;
  EXPECT_NE(run_fleet(options)->state_hash, first->state_hash);
}

TEST(Fleet, WithTheLateLastMoreIsInTimeThanByAscendingDeadlines) {
  FleetOptions options = six("large", 0.85);
  const double late_last = run_fleet(options)->hit_rate;
  options.order = QueueOrder::kDeadline;
  EXPECT_GT(late_last, 1.2 * run_fleet(options)->hit_rate);
}

TEST(Fleet, PipelinesUseSlicesThatWholeFunctionsCannot) {
  FleetOptions options = six("large", 0.85);
  const auto pipelines = run_fleet(options);
  options.planner = "esg";
  const auto whole = run_fleet(options);
  EXPECT_GT(pipelines->hit_rate, 1.05 * whole->hit_rate);
  EXPECT_GT(pipelines->answered_per_s, 1.2 * whole->answered_per_s);
  EXPECT_EQ(whole->migrations, 0);
}

TEST(Fleet, WithLittleLoadNearlyAllIsInTimeAndWhatIsAdmittedInTimeStaysSo) {
  FleetOptions options = six("small", 0.1);
  options.burstiness = 0;
  const auto found = run_fleet(options);
  EXPECT_GT(found->hit_rate, 0.9);
  EXPECT_LE(found->p95_of_objective, 1.0);
  EXPECT_GT(found->execution_ms, 0);
}

TEST(Fleet, WhatIsNotKnownIsNamed) {
  FleetOptions options = six("small", 0.1);
  options.planner = "best";
  EXPECT_FALSE(run_fleet(options));
  options.planner = "need";
  options.partition = "p9";
  EXPECT_FALSE(run_fleet(options));
}

}  // namespace
}  // namespace fairlead::sim
