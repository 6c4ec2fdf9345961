#include "node/profiler.h"

#include <gmock/gmock.h>

#include "node/testing/node_with_shares.h"

namespace fairlead {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ProfilerTest : public NodeWithShares {
 protected:
  ProfilerTest() { add_function("f"); }

  // Until the trial's function was asked something, or the experiment is over.
  void run_until_delivered(std::size_t count) {
    while (profiler.is_running() && runner.delivered.size() < count) {
      const auto starting = driver.core().instances();
      for (const InstanceView& one : starting) {
        if (one.state == InstanceState::kStarting) ready(one.instance);
      }
      if (runner.delivered.size() < count) io.run_one();
    }
  }
  void answer_last(bool is_error) {
    const InstanceId instance = runner.delivered.back().first;
    answer("\"no\"", is_error);
    idle(instance);
  }
  ExperimentStatus status() { return profiler.status("f").value(); }

  std::vector<FunctionProfile> measured;
  Profiler profiler{io,
                    control,
                    functions,
                    invocations,
                    instances,
                    [](GpuId id) { return std::optional(Device{.id = id, .name = "V100"}); },
                    [this](FunctionProfile profile) { measured.push_back(std::move(profile)); }};
};

TEST_F(ProfilerTest, ATrialIsAFunctionOfItsOwnThatNobodyCanCall) {
  ASSERT_TRUE(profiler.start({.function = "f", .payload = "{}"}, false));
  EXPECT_TRUE(functions.find("f#trial") != nullptr);
  EXPECT_FALSE(validate_function_name("f#trial"));
  EXPECT_THAT(store.functions, IsEmpty()) << "nothing of it is on disk";
  const auto share = control.shares().entry("f#trial");
  ASSERT_TRUE(share);
  EXPECT_EQ(share->seats.size(), 1u);
  run_until_delivered(1);
  EXPECT_EQ(runner.delivered.back().second.invocation.payload, "{}");
  EXPECT_EQ(status().state, "starts");
}

TEST_F(ProfilerTest, AnAnswerWithAnErrorEndsItAndLeavesNothing) {
  ASSERT_TRUE(profiler.start({.function = "f", .payload = "{}"}, false));
  run_until_delivered(1);
  answer_last(true);
  while (profiler.is_running()) io.run_one();
  EXPECT_THAT(status().failed, HasSubstr("a call of a trial failed"));
  EXPECT_TRUE(functions.find("f#trial") == nullptr);
  EXPECT_EQ(control.shares().entry("f#trial"), std::nullopt);
  EXPECT_THAT(measured, IsEmpty());
}

TEST_F(ProfilerTest, AnswersKeepOneRequestGoing) {
  ASSERT_TRUE(profiler.start({.function = "f", .payload = "{}"}, false));
  for (std::size_t i = 1; i <= 5; ++i) {
    run_until_delivered(i);
    ASSERT_EQ(runner.delivered.size(), i);
    answer_last(false);
  }
  while (status().calls < 5) io.run_one();
  EXPECT_TRUE(profiler.is_running());
}

TEST_F(ProfilerTest, OneAtATimeAndStoppedWhenAsked) {
  ASSERT_TRUE(profiler.start({.function = "f", .payload = "{}"}, false));
  add_function("g");
  const Status second = profiler.start({.function = "g", .payload = "{}"}, false);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr("on another function"));
  EXPECT_THAT(second.error().message, testing::Not(HasSubstr(" f "))) << "it may be another tenant's";
  EXPECT_THAT(profiler.start({.function = "f", .payload = "{}"}, false).error().message, HasSubstr("on f goes on"));
  profiler.stop("the node drains");
  EXPECT_EQ(status().failed, "the node drains");
  EXPECT_TRUE(functions.find("f#trial") == nullptr);
  EXPECT_TRUE(profiler.start({.function = "g", .payload = "{}"}, false));
}

TEST_F(ProfilerTest, ABusyDeviceHasRoomForLessTime) {
  ASSERT_TRUE(admit("other", {{"gpu:quota-request", "50"}}));
  ASSERT_TRUE(profiler.start({.function = "f", .payload = "{}"}, false));
  EXPECT_THAT(status().doing, HasSubstr("40 % of the time"));
  profiler.stop("enough");
  ASSERT_TRUE(admit("rest", {{"gpu:quota-request", "40"}}));
  const Status full = profiler.start({.function = "f", .payload = "{}"}, false);
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().message, HasSubstr("no GPU has room for a trial of f"));
}

TEST_F(ProfilerTest, AnUnknownFunctionIsNotMeasured) {
  EXPECT_EQ(profiler.start({.function = "nobody", .payload = ""}, false).error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace fairlead
