// What a cut costs: memory, time by slice, hops, CV.
#include "decide/pipeline/pipeline_model.h"

#include <gtest/gtest.h>

#include "decide/pipeline/dag_testing.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

std::vector<SliceType> three_types() {
  return {{"1g", 1, gib(10), ""}, {"2g", 2, gib(20), ""}, {"4g", 4, gib(40), ""}};
}

const Partition& find(const PipelineModel& model, std::string_view text) {
  for (const Partition& one : model.partitions()) {
    if (one.text(model.dag()) == text) return one;
  }
  ADD_FAILURE() << text;
  return model.partitions().front();
}

TEST(PipelineModel, AllConsecutivePartitionsAreThereOnceTheSingleStageFirst) {
  const PipelineModel model(three_in_a_row(), three_types());
  std::vector<std::string> texts;
  for (const Partition& one : model.partitions()) texts.push_back(one.text(model.dag()));
  EXPECT_EQ(texts, (std::vector<std::string>{"[a, b, c]", "[a] [b] [c]", "[a] [b, c]", "[a, b] [c]"}));
  EXPECT_EQ(model.partitions()[0].cv, 0);
  EXPECT_NEAR(model.partitions()[1].cv, 0.2020, 1e-4);  // of 80, 120, 80
}

TEST(PipelineModel, AStageHoldsAllWeightsAndTheMostThatOneNeedsBeyond) {
  Dag dag = three_in_a_row();
  dag.components[0].weights = gib(3);
  dag.components[0].peak = gib(5);
  dag.components[1].weights = gib(2);
  dag.components[1].peak = gib(6);
  const PipelineModel model(dag, three_types());
  const StageShape& both = find(model, "[a, b] [c]").stages[0];
  EXPECT_EQ(both.memory, gib(9));
  EXPECT_TRUE(both.fits(0));
  EXPECT_EQ(both.times[2], 65ms);
}

TEST(PipelineModel, WhereAStageDoesNotFitItHasNoTime) {
  const PipelineModel model(three_in_a_row(), three_types());
  EXPECT_FALSE(model.alone(2));  // 41 GiB
  EXPECT_FALSE(model.alone_on_least());
  const StageShape& first = find(model, "[a] [b] [c]").stages[0];
  EXPECT_FALSE(first.fits(0));
  EXPECT_EQ(first.times[1], 44ms);
}

TEST(PipelineModel, AHopIsItsFixedPartAndTheBytesThatCross) {
  const PipelineModel model(three_in_a_row(), three_types(), {.fixed = 100us, .bytes_per_s = 4e9});
  EXPECT_EQ(find(model, "[a] [b] [c]").stages[0].hop, 0ns);
  EXPECT_EQ(find(model, "[a] [b] [c]").stages[1].hop, 100us + Duration((4 << 20) / 4));
  EXPECT_EQ(PipelineModel(three_in_a_row(), three_types(), paper_hop(20ms)).partitions()[1].stages[1].hop, 20ms);
}

TEST(PipelineModel, ABranchCountsForThePartOfTheRequestsItRunsFor) {
  const PipelineModel model(one_with_a_branch(), three_types());
  EXPECT_EQ(model.alone(0), 45ms);
  // Of the join only one source comes.
  EXPECT_EQ(find(model, "[deblur] [sr, background, segmentation, classification]").stages[1].reads, Bytes(4 << 20));
}

TEST(PipelineModel, ParallelBranchesMayRunSideBySide) {
  const PipelineModel model(one_side_by_side(), three_types());
  const Partition& cut = find(model, "[first] [left] | [right] [last]");
  EXPECT_EQ(cut.stages[1].rank, cut.stages[2].rank);
  EXPECT_EQ(cut.stages[3].rank, 2u);
  EXPECT_EQ(find(model, "[first] [left, right] [last]").stages[1].times[0], 50ms);
}

TEST(PipelineModel, WhatNeedsNoGpuGetsNoSliceUnlessItStandsBetweenTwoThatDo) {
  Dag dag = three_in_a_row();
  for (const std::size_t one : {std::size_t{0}, std::size_t{1}}) {
    dag.components[one].needs_gpu = false;
    dag.components[one].times = {time_of("host", 7)};
  }
  const PipelineModel ends(dag, three_types());
  EXPECT_FALSE(find(ends, "(a, b) [c]").stages[0].needs_slice);
  EXPECT_EQ(*ends.alone(1), 66ms);
  dag = three_in_a_row();
  dag.components[1].needs_gpu = false;
  dag.components[1].times = {time_of("host", 7)};
  const PipelineModel between(dag, three_types());
  EXPECT_EQ(find(between, "[a, b, c]").stages[0].times[2], 71ms);
  EXPECT_EQ(find(between, "[a, b, c]").stages[0].memory, gib(32));
}

TEST(PipelineModel, ALongChainIsJoinedUntilItsPartitionsCanBeCounted) {
  Dag dag = dag_of_nothing();
  dag.components.push_back(component(dag, "c0", {"input"}));
  for (int i = 1; i < 40; ++i) {
    const std::string before = "c" + std::to_string(i - 1);
    dag.components.push_back(component(dag, "c" + std::to_string(i), {before.c_str()}));
  }
  end_with(dag, "c39");
  const PipelineModel model(dag, three_types());
  EXPECT_EQ(model.groups().size(), kMaxGroups);
  EXPECT_EQ(model.partitions().size(), 2048u);
}

}  // namespace
}  // namespace fairlead
