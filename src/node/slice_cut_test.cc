// Which slices are cut anew for a pipeline. Planted and caught: busy slices cut; a slice of several compute instances cut; the last device of
// another function taken; slices that could stay, made anew; profiles with media engines made.
#include "node/slice_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/pipeline/dag_testing.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// An A100 of 80 GB with what its driver says of it.
MigLayout a100() {
  MigLayout layout{.gpu_uuid = "GPU-1", .profiles = {}, .instances = {}};
  const MigGeometry& geometry = *mig_geometry("a100-80").value();
  for (const MigProfile& one : geometry.profiles) {
    layout.profiles.push_back({.id = static_cast<unsigned>(100 + layout.profiles.size()),
                               .name = one.name,
                               .compute = one.type.compute,
                               .memory_slices = one.memory_slices,
                               .memory = one.type.memory,
                               .starts = one.starts});
  }
  layout.profiles.push_back(
      {.id = 120, .name = "1g.10gb+me", .compute = 1, .memory_slices = 1, .memory = gib(9), .starts = {0, 1, 2, 3}});
  return layout;
}

class SliceCutTest : public testing::Test {
 protected:
  void slice(const std::string& profile, int start, bool is_idle) {
    MigLayout& gpu = layouts_[0];
    const auto its = std::find_if(gpu.profiles.begin(), gpu.profiles.end(),
                                  [&](const MigLayout::Profile& one) { return one.name == profile; });
    const auto number = static_cast<unsigned>(gpu.instances.size() + 1);
    const std::string uuid = "MIG-" + std::to_string(number);
    gpu.instances.push_back({.id = number,
                             .profile = static_cast<std::size_t>(its - gpu.profiles.begin()),
                             .start = start,
                             .uuids = {uuid}});
    const Device device{.id = GpuId(number),
                        .name = "A100",
                        .uuid = uuid,
                        .gpu_uuid = "GPU-1",
                        .slice = Slice{.profile = profile, .start = start, .size = 1},
                        .memory = its->memory};
    devices_.push_back(device);
    if (is_idle) idle_.push_back(device);
  }
  // One component of so much memory; 40 ms on 1g, 22 on 2g, 15 on 3g, 12 on 4g, 8 on all.
  static Dag one(Bytes memory) {
    Dag dag = dag_of_nothing();
    dag.components.push_back(component(dag, "a", {"input"}, {40, 22, 12}, memory));
    dag.components[0].times.push_back(time_of("3g", 15));
    dag.components[0].times.push_back(time_of("7g", 8));
    end_with(dag, "a");
    return dag;
  }
  std::optional<SliceCut> plan(const Dag& dag) const {
    return plan_cut({.dag = dag, .layouts = layouts_, .devices = devices_, .idle = idle_, .others = others_});
  }
  // "2g.20gb@4"
  std::vector<std::string> made(const SliceCut& cut) const {
    std::vector<std::string> names;
    for (const MigPiece& piece : cut.make) {
      for (const MigLayout::Profile& one : layouts_[0].profiles) {
        if (one.id == piece.profile) names.push_back(one.name + "@" + std::to_string(piece.start));
      }
    }
    return names;
  }

  std::vector<MigLayout> layouts_ = {a100()};
  std::vector<Device> devices_, idle_;
  std::vector<DeviceNeed> others_;
};

TEST_F(SliceCutTest, IdleSlicesBecomeOneThatHoldsThePipelineAndOthersStay) {
  slice("3g.40gb", 0, false);
  for (int i = 0; i < 3; ++i) slice("1g.10gb", 4 + i, i < 2);
  const auto cut = plan(one(gib(15)));
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->gpu_uuid, "GPU-1");
  EXPECT_THAT(made(*cut), ElementsAre("2g.20gb@4"));
  ASSERT_EQ(cut->destroy.size(), 2u);
  EXPECT_EQ(cut->destroy[0].id, 2u);
  EXPECT_EQ(cut->destroy[1].uuid, "MIG-3");
  EXPECT_EQ(cut->make[0].memory_slices, 2);
  ASSERT_EQ(cut->devices.size(), 2u);
  EXPECT_THAT(cut->why, HasSubstr("1g.10gb, 1g.10gb become 2g.20gb"));
}

TEST_F(SliceCutTest, WhatIsBusyOrSharedByComputeInstancesStays) {
  slice("4g.40gb", 0, true);
  slice("3g.40gb", 4, false);
  layouts_[0].instances[0].uuids.emplace_back("MIG-1b");
  EXPECT_FALSE(plan(one(gib(60))));
  EXPECT_FALSE(plan(one(gib(30))));
}

TEST_F(SliceCutTest, NothingIsCutForWhatFitsNowhere) {
  for (int i = 0; i < 7; ++i) slice("1g.10gb", i, true);
  EXPECT_FALSE(plan(one(gib(200))));
  EXPECT_TRUE(plan(one(gib(60)))) << "the whole GPU";
}

TEST_F(SliceCutTest, FreeMemorySlicesAreUsedAsIdleOnes) {
  slice("3g.40gb", 4, false);
  const auto cut = plan(one(gib(15)));
  ASSERT_TRUE(cut);
  EXPECT_THAT(cut->destroy, IsEmpty());
  EXPECT_THAT(cut->why, HasSubstr("free memory slices become"));
}

TEST_F(SliceCutTest, AnotherFunctionKeepsADeviceThatHoldsIt) {
  slice("4g.40gb", 0, true);
  slice("3g.40gb", 4, true);
  ASSERT_TRUE(plan(one(gib(60)))) << "one of 80 GB";
  others_ = {{.memory = gib(1), .mig_profile = ""}};
  EXPECT_FALSE(plan(one(gib(60)))) << "nothing would be left";
  others_ = {{.memory = gib(100), .mig_profile = ""}};
  EXPECT_FALSE(plan(one(gib(60)))) << "it gets a smaller one for itself, which would go";
}

TEST_F(SliceCutTest, AnotherFunctionKeepsTheProfileThatItAsksFor) {
  for (int i = 0; i < 4; ++i) slice("1g.10gb", i, true);
  slice("3g.40gb", 4, false);
  others_ = {{.memory = gib(1), .mig_profile = "1g.10gb"}};
  const auto cut = plan(one(gib(15)));
  ASSERT_TRUE(cut);
  EXPECT_THAT(made(*cut), ElementsAre(testing::StartsWith("2g.20gb@")));
  EXPECT_FALSE(plan(one(gib(35)))) << "one of four memory slices would leave no 1g";
  others_ = {{.memory = gib(1), .mig_profile = "3g"}};
  EXPECT_TRUE(plan(one(gib(35)))) << "the 3g is busy, and stays";
}

TEST_F(SliceCutTest, ProfilesWithMediaEnginesAreNeitherMadeNorCut) {
  slice("1g.10gb+me", 0, true);
  for (int i = 1; i < 7; ++i) slice("1g.10gb", i, true);
  const auto cut = plan(one(gib(15)));
  ASSERT_TRUE(cut);
  for (const std::string& name : made(*cut)) EXPECT_THAT(name, testing::Not(HasSubstr("+me")));
  for (const MigEnd& one : cut->destroy) EXPECT_NE(one.id, 1u);
}

TEST_F(SliceCutTest, WhatIsLateEitherWayIsNotCutFor) {
  slice("4g.40gb", 0, true);
  slice("3g.40gb", 4, false);
  Dag dag = one(gib(30));
  dag.objective = std::chrono::milliseconds(5);
  EXPECT_FALSE(plan(dag)) << "late either way, and there is a slice for it";
}

TEST_F(SliceCutTest, WhereASliceHoldsItAlreadyNothingIsCutForLittle) {
  for (int i = 0; i < 4; ++i) slice("1g.10gb", i, false);
  slice("3g.40gb", 4, true);
  EXPECT_FALSE(plan(one(gib(15))));
}

}  // namespace
}  // namespace fairlead
