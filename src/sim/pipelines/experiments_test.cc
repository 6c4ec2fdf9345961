// The experiments of the laboratory of pipelines, at a small size.
#include "sim/pipelines/experiments.h"

#include <gtest/gtest.h>

#include "sim/pipelines/goodput.h"

namespace fairlead::sim {
namespace {

double number(const PipelineRow& row, std::string_view name) {
  for (const auto& [known, value] : row.numbers) {
    if (known == name) return value;
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(PipelineExperiments, TheCounterexample) {
  const auto rows = *run_pipelines("counterexample", {});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_NEAR(number(rows[0], "per_second"), 8.3, 0.05);
  EXPECT_NEAR(number(rows[2], "per_second"), 15.4, 0.05);
  EXPECT_EQ(number(rows[2], "compute"), 6);
}

TEST(PipelineExperiments, NobodyPassesTheBoundAndPipelinesPassWholeFunctions) {
  PipelineOptions options;
  options.variants = {"large"};
  options.partitions = {"p1"};
  options.chains = 5;
  const auto rows = *run_pipelines("goodput", options);
  for (const PipelineRow& row : rows) {
    EXPECT_LE(number(row, "of_bound"), 1 + 1e-9) << row.contestant;
  }
  EXPECT_NEAR(number(rows[0], "of_esg"), 1, 1e-9);
  EXPECT_GT(number(rows[8], "of_esg"), 1.3);
  EXPECT_GE(number(rows[8], "of_esg"), number(rows[7], "of_esg") - 1e-9);
}

TEST(PipelineExperiments, CuttingAnewIsNeverWorse) {
  for (const Application& one : applications("small")) {
    const auto plain = goodput(one, {.partition = "p1", .steps = 100'000}),
               recut = goodput(one, {.partition = "p1", .recut = true, .steps = 100'000});
    EXPECT_GE(recut->rate_per_s, plain->rate_per_s) << one.name;
  }
}

TEST(PipelineExperiments, TheSameOptionsGiveTheSameHash) {
  PipelineOptions options;
  options.variants = {"medium"};
  options.seeds = 1;
  options.length = std::chrono::seconds(10);
  const auto first = *run_pipelines("bursts", options), second = *run_pipelines("bursts", options);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].state_hash, second[i].state_hash);
}

TEST(PipelineExperiments, WhatIsNotKnownIsNamed) {
  EXPECT_EQ(run_pipelines("all", {}).error().message,
            "experiment is \"all\", it must be one of counterexample, goodput, anytime, bursts, workloads");
  PipelineOptions options;
  options.variants = {"huge"};
  EXPECT_FALSE(run_pipelines("goodput", options));
  EXPECT_FALSE(run_pipelines("bursts", options));
  options = {};
  options.partitions = {"p7"};
  EXPECT_FALSE(run_pipelines("goodput", options));
}

}  // namespace
}  // namespace fairlead::sim
