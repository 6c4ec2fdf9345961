// Which slices pipelines may have, by what the core and other functions need of them, and by what components were seen to take. Planted and
// caught: times that nobody looks at; a slice that is saved and planned on; a slice that is promised twice.
#include "node/pipeline_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/pipeline/dag_testing.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class PipelineSlicesTest : public testing::Test {
 protected:
  PipelineSlicesTest() {
    driver_.connect([](const Action&) {}, [] {});
    slices_.connect({.all = [this] { return devices_; },
                     .is_empty = [](GpuId) { return true; },
                     .end_idle_servers = [](GpuId) {},
                     .give_share = [](InstanceSpec&, GpuId, const Share&) {}});
    program_.dag = three_in_a_row();
    for (const Component& one : program_.dag.components) {
      program_.tasks.push_back({.spec = {}, .constant_files = {}, .inputs = {}, .outputs = {}, .kind = {one.name}});
    }
  }
  void add(const std::string& profile, int memory_gib) {
    Device device{.id = GpuId(devices_.size() + 1),
                  .name = "A100",
                  .uuid = "MIG-",
                  .gpu_uuid = "GPU-1",
                  .slice = Slice{.profile = profile, .start = {}, .size = 1},
                  .memory = gib(memory_gib)};
    device.uuid += std::to_string(device.id.value());
    driver_.core().add_gpu({.gpu = device.id, .memory = device.memory});
    devices_.push_back(device);
  }
  void runs(const std::string& content, const std::string& slice, Duration time) {
    for (std::uint64_t i = 0; i < ComponentTimes::kEnough; ++i) times_->ran(content, slice, time);
  }

  boost::asio::io_context io_;
  CoreOptions core_options_{.starts_per_gpu = 8};
  CoreDriver driver_{io_, core_options_, make_policy("fcfs", {}).value()};
  Functions functions_;
  std::vector<Device> devices_;
  const std::shared_ptr<ComponentTimes> times_ = std::make_shared<ComponentTimes>();
  PipelineSlices slices_{driver_, functions_, times_};
  PipelineProgram program_;
};

// 80, 120 and 80 ms are said on 1g; two slices for three components, so the first two or the last two share one.
TEST_F(PipelineSlicesTest, WhereAPipelineIsCutIsByWhatItsComponentsWereSeenToTake) {
  for (Component& one : program_.dag.components) one.weights = one.peak = gib(4);
  add("1g.10gb", 10);
  add("1g.10gb", 10);
  const auto names = [&](const PipelinePlacement& placement) {
    std::vector<std::size_t> sizes;
    for (const auto& stage : placement.stages) sizes.push_back(stage.components.size());
    return sizes;
  };
  const std::string a = program_.tasks[0].kind.content, c = program_.tasks[2].kind.content;
  runs(a, "1g", 500ms);
  const auto late = slices_.plan(program_);
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_EQ(names(*late), (std::vector<std::size_t>{1, 2})) << "the first takes long, alone";
  runs(c, "1g", 5s);
  const auto early = slices_.plan(program_);
  ASSERT_TRUE(early);
  EXPECT_EQ(names(*early), (std::vector<std::size_t>{2, 1})) << "the last takes longer";
  EXPECT_GT(early->latency, 5s);
  EXPECT_FALSE(slices_.plan_whole(program_, *early)) << "no slice has room for all of it";
  add("2g.20gb", 20);
  ASSERT_LT(late->latency, 1s) << "as it was when it was planned";
  const auto whole = slices_.plan_whole(program_, *late);
  ASSERT_TRUE(whole) << "what answers no later is measured by the same times";
  EXPECT_EQ(whole->slices().size(), 1u);
}

TEST_F(PipelineSlicesTest, WhatIsSavedIsInNoPlanOfTheRoundButOfWhoWaits) {
  for (Component& one : program_.dag.components) one.weights = one.peak = gib(3);
  add("1g.10gb", 10);
  slices_.begin_round();
  const auto first = slices_.plan(program_);
  ASSERT_TRUE(first) << first.error().message;
  slices_.save(*first);
  EXPECT_FALSE(slices_.plan(program_));
  EXPECT_TRUE(slices_.plan_in_time(program_, {}));
  slices_.end_round();
  EXPECT_TRUE(slices_.plan(program_));
}

TEST_F(PipelineSlicesTest, ASliceThatIsPromisedIsTheNextOnesWhenTheFirstHasLeft) {
  for (Component& one : program_.dag.components) one.weights = one.peak = gib(3);
  add("1g.10gb", 10);
  const auto placement = slices_.plan(program_);
  ASSERT_TRUE(placement);
  const GpuId gpu = devices_[0].id;
  slices_.take(1, *placement);
  EXPECT_EQ(slices_.holder(gpu), 1u);
  EXPECT_FALSE(slices_.plan(program_));
  EXPECT_TRUE(slices_.plan(program_, {devices_[0]})) << "of who leaves it";
  slices_.take(2, *placement);
  EXPECT_TRUE(slices_.is_promised(gpu));
  EXPECT_FALSE(slices_.plan(program_, {devices_[0]})) << "it is promised";
  EXPECT_FALSE(slices_.are_held(2, *placement));
  slices_.give_back(1, *placement);
  EXPECT_EQ(slices_.holder(gpu), 2u);
  EXPECT_TRUE(slices_.are_held(2, *placement));
  EXPECT_TRUE(slices_.are_empty(2, *placement));
  slices_.give_back(2, *placement);
  EXPECT_FALSE(slices_.holder(gpu));
  EXPECT_EQ(slices_.free().size(), 1u);
}

TEST_F(PipelineSlicesTest, ASliceThatWentIsSaidByName) {
  for (Component& one : program_.dag.components) one.weights = one.peak = gib(3);
  add("1g.10gb", 10);
  const auto placement = slices_.plan(program_);
  ASSERT_TRUE(placement);
  slices_.take(1, *placement);
  EXPECT_EQ(slices_.lost(*placement), "");
  EXPECT_FALSE(slices_.are_gone(*placement));
  devices_.clear();
  EXPECT_THAT(slices_.lost(*placement), HasSubstr("1g"));
  EXPECT_TRUE(slices_.are_gone(*placement));
}

}  // namespace
}  // namespace fairlead
