// Which slices a pipeline takes, as devices of a node. Planted and caught: a device taken twice; a type's slice that has another memory.
#include "node/pipeline_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "decide/pipeline/dag_testing.h"

namespace fairlead {
namespace {

using testing::HasSubstr;

Device slice(std::uint64_t id, const std::string& profile, int memory_gib) {
  return {.id = GpuId(id),
          .name = "A100",
          .uuid = "MIG-" + std::to_string(id),
          .gpu_uuid = "GPU-1",
          .slice = Slice{.profile = profile, .start = {}, .size = 1},
          .memory = gib(memory_gib)};
}

std::set<std::uint64_t> ids(const PipelinePlacement& placement) {
  std::set<std::uint64_t> taken;
  for (const auto& stage : placement.stages) taken.insert(stage.device.id.value());
  return taken;
}

TEST(PipelinePlacement, EachStageHasASliceOfItsOwnWithItsMemory) {
  const Dag dag = three_in_a_row();
  const auto placed = place_pipeline(dag, {slice(1, "1g.10gb", 10), slice(2, "2g.20gb", 20), slice(3, "4g.40gb", 40)});
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_EQ(ids(*placed).size(), placed->stages.size());
  std::set<std::size_t> components;
  for (const auto& stage : placed->stages) {
    Bytes weights{0};
    for (const std::size_t one : stage.components) {
      weights += dag.components[one].weights;
      EXPECT_TRUE(components.insert(one).second);
    }
    EXPECT_LE(weights, stage.device.memory);
  }
  EXPECT_EQ(components.size(), 3u);
  EXPECT_THAT(placed->why, HasSubstr("on 4g"));
}

TEST(PipelinePlacement, ALatencyIsByTheTimesOfToday) {
  Dag dag = three_in_a_row();
  for (Component& one : dag.components) one.weights = one.peak = gib(9);
  const auto placed = place_pipeline(dag, {slice(1, "2g.20gb", 20), slice(2, "1g.10gb", 10)});
  ASSERT_TRUE(placed) << placed.error().message;
  ASSERT_EQ(placed->stages.size(), 2u);
  EXPECT_EQ(latency_of(dag, *placed), placed->latency);
  for (Component& one : dag.components) {
    for (SliceTime& time : one.times) time.mean *= 3;
  }
  EXPECT_GT(latency_of(dag, *placed), 2 * placed->latency);
  EXPECT_LT(latency_of(dag, *placed), 3 * placed->latency) << "a hop takes what it took";
  PipelinePlacement unlike = *placed;
  unlike.stages.pop_back();
  EXPECT_FALSE(latency_of(dag, unlike)) << "that is no partition";
}

TEST(PipelinePlacement, SlicesOfOneTypeAreTakenOnceEach) {
  Dag dag = three_in_a_row();
  for (Component& one : dag.components) one.weights = one.peak = gib(9);
  const auto placed = place_pipeline(dag, {slice(7, "1g.10gb", 10), slice(8, "1g.10gb", 10), slice(9, "1g.10gb", 10)});
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_EQ(ids(*placed), (std::set<std::uint64_t>{7, 8, 9}));
}

TEST(PipelinePlacement, WhatNeedsNoGpuHasAStageAndNoSlice) {
  Dag dag = three_in_a_row();
  Component& decode = dag.components[0];
  decode.needs_gpu = false;
  decode.program = std::exchange(decode.task, "") + ":f";
  decode.weights = decode.peak = Bytes(0);
  decode.times = {{.slice = "host", .mean = std::chrono::milliseconds(7)}};
  for (const std::size_t one : {1, 2}) dag.components[one].weights = dag.components[one].peak = gib(9);
  ASSERT_FALSE(check_dag(dag));
  const auto placed = place_pipeline(dag, {slice(7, "1g.10gb", 10), slice(8, "1g.10gb", 10), slice(9, "1g.10gb", 10)});
  ASSERT_TRUE(placed) << placed.error().message;
  ASSERT_EQ(placed->stages.size(), 3U);
  EXPECT_FALSE(placed->stages[0].has_slice());
  EXPECT_EQ(placed->slices().size(), 2U);
  EXPECT_EQ(compute_slices(*placed), 2);
  EXPECT_THAT(placed->why, HasSubstr("on the host"));
  Dag without = dag;
  without.components[0].times.clear();
  const auto quick = place_pipeline(without, {slice(7, "1g.10gb", 10), slice(8, "1g.10gb", 10)});
  EXPECT_EQ(placed->latency - quick->latency, std::chrono::milliseconds(7)) << "its time counts";
}

TEST(PipelinePlacement, TheSameProfileWithMoreMemoryIsAnotherType) {
  Dag dag = three_in_a_row();
  dag.components.resize(1);
  dag.components[0].weights = dag.components[0].peak = gib(16);
  end_with(dag, "a");
  const auto placed = place_pipeline(dag, {slice(1, "1g.10gb", 10), slice(2, "1g.20gb", 20)});
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_EQ(ids(*placed), (std::set<std::uint64_t>{2}));
}

TEST(PipelinePlacement, WhatFitsNowhereSaysWhatWasLookedAt) {
  EXPECT_THAT(place_pipeline(three_in_a_row(), {slice(1, "1g.10gb", 10)}).error().message,
              HasSubstr("1 slices that are free"));
  EXPECT_THAT(place_pipeline(three_in_a_row(), {}).error().message, HasSubstr("no slice is free"));
}

TEST(PipelinePlacement, TheWholeFunctionIsOneStageOnALargeSliceOrNone) {
  const Dag dag = three_in_a_row();
  EXPECT_FALSE(place_whole(dag, {slice(1, "2g.20gb", 20)}, std::chrono::seconds(10)));
  const auto whole = place_whole(dag, {slice(1, "2g.20gb", 20), slice(2, "4g.80gb", 80)}, std::chrono::seconds(10));
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->stages.size(), 1u);
  EXPECT_EQ(ids(*whole), (std::set<std::uint64_t>{2}));
  EXPECT_FALSE(place_whole(dag, {slice(2, "4g.80gb", 80)}, std::chrono::milliseconds(50))) << "it takes 103 ms there";
}

}  // namespace
}  // namespace fairlead
