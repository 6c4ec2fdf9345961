#include "node/profiler.h"

#include <gmock/gmock.h>

#include "node/testing/fake_store.h"
#include "node/testing/node_without_processes.h"
#include "store/test_folder.h"

namespace fairlead {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ProfilerTest : public NodeWithoutProcesses {
 protected:
  ProfilerTest() {
    control.shares().configure({.mode = SharingMode::kNone, .policy = "fcfs", .keeps_instances = true});
    control.shares().add_device({.id = GpuId(1), .name = "V100", .uuid = "GPU-a", .memory = gib(16)}, 32, 2);
    add_function("f");
  }

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

  store::TestFolder folder;
  Worker worker{io};
  FakeStore store;
  FunctionControl control{io,
                          ImageStoreOptions{.state_dir = folder / "state"},
                          worker,
                          store,
                          functions,
                          tenants,
                          request_ids,
                          driver,
                          [](const RegisteredFunction&) {}};
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
  profiler.stop("the node drains");
  EXPECT_EQ(status().failed, "the node drains");
  EXPECT_TRUE(functions.find("f#trial") == nullptr);
  EXPECT_TRUE(profiler.start({.function = "g", .payload = "{}"}, false));
}

TEST_F(ProfilerTest, ABusyDeviceHasRoomForLessTime) {
  FunctionRecord other{.name = "other"};
  other.config.tags = {{"gpu:quota-request", "50"}};
  ASSERT_TRUE(control.shares().admit(other, false));
  ASSERT_TRUE(profiler.start({.function = "f", .payload = "{}"}, false));
  EXPECT_THAT(status().doing, HasSubstr("40 % of the time"));
  profiler.stop("enough");
  FunctionRecord rest{.name = "rest"};
  rest.config.tags = {{"gpu:quota-request", "40"}};
  ASSERT_TRUE(control.shares().admit(rest, false));
  const Status full = profiler.start({.function = "f", .payload = "{}"}, false);
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().message, HasSubstr("no GPU has room for a trial of f"));
}

TEST_F(ProfilerTest, AnUnknownFunctionIsNotMeasured) {
  EXPECT_EQ(profiler.start({.function = "nobody", .payload = ""}, false).error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace fairlead
