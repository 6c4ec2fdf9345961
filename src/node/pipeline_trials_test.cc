// What profiles of pipelines say, and what is believed of one that comes from elsewhere. The experiment itself: tests/functional/
// test_pipeline_profiles.py. Planted and caught: times of other components; of another model of GPU; few runs.
#include "node/pipeline_trials.h"

#include <gtest/gtest.h>

#include "decide/pipeline/dag_testing.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

PipelineProgram program() {
  PipelineProgram made;
  made.dag = three_in_a_row();
  for (const Component& one : made.dag.components) {
    ComponentTask& task = made.tasks.emplace_back();
    task.kind.content = "digest of " + one.name;
  }
  return made;
}
std::vector<Device> a100() {
  return {{.id = GpuId(1), .name = "NVIDIA A100-SXM4-80GB MIG 2g.20gb"}};
}
FunctionProfile told(const std::string& component, std::uint64_t runs) {
  FunctionProfile profile{.function = "f", .code_sha256 = "x", .device = "NVIDIA A100-SXM4-80GB"};
  profile.components = {{.component = component, .slice = "1g", .ms = 5, .deviation_ms = 1, .runs = runs}};
  return profile;
}
const ComponentTime& find(const std::vector<ComponentTime>& all, const std::string& component,
                          const std::string& slice) {
  return *std::find_if(all.begin(), all.end(),
                       [&](const ComponentTime& one) { return one.component == component && one.slice == slice; });
}

TEST(PipelineTrials, AProfileSaysWhatWasSeenAndWhatIsPredicted) {
  ComponentTimes times;
  for (int i = 0; i < 6; ++i) times.ran("digest of a", "1g", 8ms);
  const auto all = times_of(times, program());
  EXPECT_EQ(all.size(), 9u) << "three components on three types";
  EXPECT_EQ(find(all, "a", "1g").runs, 6u);
  EXPECT_DOUBLE_EQ(find(all, "a", "1g").ms, 8);
  EXPECT_EQ(find(all, "a", "2g").runs, 0u);
  EXPECT_NEAR(find(all, "a", "2g").ms, 4.4, 0.01) << "a tenth of the 44 ms that are said";
  EXPECT_EQ(find(all, "b", "1g").runs, 0u) << "what its author measured was not seen here";
  EXPECT_EQ(model_of(a100()), "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(model_of({}), "no GPU");
}

TEST(PipelineTrials, WhatIsToldIsOfTheProgramsComponentsOnAModelThatIsHere) {
  ComponentTimes times;
  learn(times, told("gone", 30), program(), a100());
  learn(times, told("a", 4), program(), a100());
  learn(times, told("b", 30), program(), {{.id = GpuId(1), .name = "H100"}});
  learn(times, told("c", 30), program(), a100());
  EXPECT_FALSE(times.seen("digest of a", "1g")) << "of few runs";
  EXPECT_FALSE(times.seen("digest of b", "1g")) << "of another model";
  ASSERT_TRUE(times.seen("digest of c", "1g"));
  EXPECT_EQ(times.seen("digest of c", "1g")->mean, 5ms);
}

}  // namespace
}  // namespace fairlead
