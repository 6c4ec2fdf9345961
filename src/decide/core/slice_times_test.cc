// Planted and caught: one number for all profiles; whole GPUs learnt as slices.
#include "decide/core/slice_times.h"

#include <gtest/gtest.h>

#include "decide/core/core_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

TEST(SliceTimes, EachProfileHasItsOwn) {
  SliceTimes times;
  times.learn_run("1g.10gb", 200ms);
  times.learn_run("3g.40gb", 60ms);
  times.learn_run("3g.40gb", 160ms);
  times.learn_start("3g.40gb", 2s);
  times.learn_run("", 7s);
  EXPECT_EQ(times.run_on("1g.10gb"), Duration(200ms));
  EXPECT_EQ(times.run_on("3g.40gb"), Duration(70ms));
  EXPECT_EQ(times.start_on("3g.40gb"), Duration(2s));
  EXPECT_FALSE(times.start_on("1g.10gb"));
  EXPECT_FALSE(times.run_on(""));
  EXPECT_EQ(times.all().size(), 2u);
}

}  // namespace
}  // namespace fairlead

namespace fairlead::testing {
namespace {

using namespace std::chrono_literals;

constexpr FlowId kFunction(1);

// One invocation at a time, first on a slice of one profile, then on one of another.
TEST_F(CoreTest, StartsAndRunsAreLearntByTheProfileOfTheSlice) {
  core_ = std::make_unique<Core>(CoreOptions{.slots_per_gpu = 1}, policy_named("mqfq-sticky"));
  core_->add_gpu({.gpu = GpuId(1), .mig_profile = "1g.10gb"});
  core_->add_gpu({.gpu = GpuId(2), .mig_profile = "3g.40gb"});
  Actions out;
  Instant now{};
  std::uint64_t next = 0;
  struct Round {
    const char* profile;
    Duration start, run;
  };
  for (const auto& [profile, start, run] : {Round{"1g", 4s, 2s}, Round{"3g", 1s, 500ms}}) {
    const FlowSpec spec{.flow = kFunction, .mig_profile = profile};
    if (next == 0) core_->add_function(spec);
    if (next > 0) core_->update_function(now, spec, out, Core::Instances::kReplaced);
    const InvocationId id(++next);
    out.clear();
    ASSERT_TRUE(core_->arrive(now, id, kFunction, out));
    InstanceId instance;
    for (const Action& action : out) {
      if (const auto* started = std::get_if<StartInstance>(&action)) instance = started->instance;
    }
    ASSERT_TRUE(instance);
    core_->instance_ready(now += start, instance, out);
    core_->answered(now += run, id, false, std::nullopt, out);
  }
  const auto learnt = core_->learnt(kFunction).on_slices;
  ASSERT_EQ(learnt.size(), 2u);
  EXPECT_EQ(learnt.at("1g.10gb").cold_start, Duration(4s));
  EXPECT_EQ(learnt.at("1g.10gb").run, Duration(2s));
  EXPECT_EQ(learnt.at("3g.40gb").cold_start, Duration(1s));
  EXPECT_EQ(learnt.at("3g.40gb").run, Duration(500ms));
}

}  // namespace
}  // namespace fairlead::testing
