// Small clusters in virtual time.
#include "sim/cluster/cluster_run.h"

#include <gtest/gtest.h>

#include "sim/cluster/experiments.h"

namespace fairlead::sim {
namespace {

ClusterRunOptions small() {
  return {.nodes = 12, .gpus = 2, .load = 0.5, .seconds = 40, .warm_up = 5, .gateways = 4};
}

TEST(ClusterRun, AnyNumberOfThreadsGivesTheSameActions) {
  ClusterRunOptions options = small();
  options.lost_nodes = 1;
  options.gossip_loss = 0.1;
  const ClusterRunResult one = run_cluster(options);
  options.threads = 3;
  const ClusterRunResult three = run_cluster(options);
  EXPECT_EQ(one.state_hash, three.state_hash);
  EXPECT_EQ(one.mean_s, three.mean_s);
  options.seed = 2;
  EXPECT_NE(run_cluster(options).state_hash, one.state_hash);
}

TEST(ClusterRun, ALostNodeLosesNoCall) {
  ClusterRunOptions options = small();
  options.lost_nodes = 3;
  const ClusterRunResult found = run_cluster(options);
  EXPECT_GT(found.resent, 0u);
  EXPECT_EQ(found.lost, 0u);
  EXPECT_EQ(found.refused, 0u);
  EXPECT_GT(found.calls, 500u);
}

TEST(ClusterRun, ClocksOfReportsChangeNothing) {
  ClusterRunOptions options = small();
  const std::uint64_t hash = run_cluster(options).state_hash;
  options.skew = std::chrono::hours(1);
  EXPECT_EQ(run_cluster(options).state_hash, hash);
}

TEST(ClusterRun, ClocksOfTenantsNarrowTheGapOverNodes) {
  ClusterRunOptions options = small();
  options.seconds = 100;
  options.tenant_loads = {1.5, 0.6, 0.6};
  options.tenant_functions = {8, 1, 0.25};
  const ClusterRunResult each = run_cluster(options);
  options.has_tenant_clocks = true;
  const ClusterRunResult together = run_cluster(options);
  EXPECT_GT(each.mean_gap_s, 0);
  EXPECT_LT(together.mean_gap_s, 0.7 * each.mean_gap_s);
}

TEST(ClusterExperiments, WhatIsNotKnownIsNamed) {
  EXPECT_EQ(run_cluster_experiment("all", {}).error().message,
            "experiment is \"all\", it must be one of routing, bounds, failures, fairness, speed");
  EXPECT_FALSE(run_cluster_experiment("routing", {.nodes = 1}));
}

}  // namespace
}  // namespace fairlead::sim
