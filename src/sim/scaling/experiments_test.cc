// The experiments of the laboratory of scaling, at a small size.
#include "sim/scaling/experiments.h"

#include <gtest/gtest.h>

#include "sim/scaling/packing_runs.h"
#include "sim/scaling/profiler_runs.h"
#include "sim/scaling/size_runs.h"

namespace fairlead::sim {
namespace {

double number(const ScalingRow& row, std::string_view name) {
  for (const auto& [known, value] : row.numbers) {
    if (known == name) return value;
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(ScalingExperiments, ByTheExactTestAllEightStandInAllOrders) {
  const auto rows = *run_scaling("orders", {});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(number(rows[0], "all_placed"), 138);
  EXPECT_EQ(number(rows[2], "all_placed"), 420);
  EXPECT_EQ(number(rows[2], "orders"), 420);
}

TEST(ScalingExperiments, UnderChurnTheExactTestNeedsFewerDevices) {
  ScalingOptions options;
  options.events = 1500;
  options.mixes = {"small"};
  const auto rows = *run_scaling("churn", options);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_LT(number(rows[2], "of_rectangles"), 0.85);
  EXPECT_LE(number(rows[3], "of_rectangles"), number(rows[2], "of_rectangles"));
  EXPECT_EQ(number(rows[2], "moves_per_event"), 0);
  EXPECT_GE(number(rows[2], "of_bound"), 1);
}

// Nothing that is counted may be better than what no packer can beat.
TEST(ScalingExperiments, NobodyIsBelowTheBound) {
  for (const PackingRule rule : {PackingRule::kRectangles, PackingRule::kExact}) {
    const ClusterDevices found = cluster_devices("cheapest", rule, 3, 7);
    EXPECT_GE(found.devices, found.bound);
    EXPECT_LT(found.devices, 1.3 * found.bound);
  }
  for (const FunctionShape& shape : function_shapes()) {
    EXPECT_GE(static_costs("cheapest", shape).of_exact, 1 - 1e-6) << shape.name;
  }
}

TEST(ScalingExperiments, TheFittedProfileNeedsAQuarterOfTheGridsTrials) {
  for (const FunctionShape& shape : function_shapes()) {
    const ProfilerResult fitted = fitted_profiles(shape, 0.05, 20, 3);
    EXPECT_LE(fitted.trials, 35 / 4.0) << shape.name;
    EXPECT_GE(fitted.within_percent, 85) << shape.name;
  }
}

TEST(ScalingExperiments, WhatIsNotKnownIsNamed) {
  EXPECT_EQ(run_scaling("all", {}).error().message,
            "experiment is \"all\", it must be one of orders, churn, static, cluster, bursts, ramp, profiler");
  ScalingOptions options;
  options.mixes = {"big"};
  EXPECT_FALSE(run_scaling("churn", options));
  options = {};
  options.predictor = "oracle";
  EXPECT_FALSE(run_scaling("bursts", options));
}

}  // namespace
}  // namespace fairlead::sim
