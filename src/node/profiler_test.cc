#include "node/profiler.h"

#include <gmock/gmock.h>

#include <functional>
#include <utility>

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

// With MPS: the time is moved by each answer, and instances answer as long as nobody says otherwise.
class ProfilerWithNeighbour : public ProfilerTest {
 protected:
  ProfilerWithNeighbour() {
    control.shares().configure({.mode = SharingMode::kMps, .policy = "fcfs", .keeps_instances = true});
  }
  bool is_there(const std::string& name) { return functions.find(name) != nullptr; }
  bool has_neighbour() { return is_there("f#beside"); }
  static ProfileRequest request() { return {.function = "f", .payload = "{}", .trial_seconds = 1}; }

  // One round: starting instances get ready, and every call is answered that `answers` is true of.
  void turn() {
    for (const InstanceView& one : driver.core().instances()) {
      if (one.state == InstanceState::kStarting) ready(one.instance);
    }
    while (served < runner.delivered.size()) waiting.push_back(served++);
    std::vector<std::size_t> left;
    for (const std::size_t at : std::exchange(waiting, {})) {
      const std::string name = runner.delivered[at].second.invocation.function;
      answers(name) ? answer_one(at, fails(name)) : left.push_back(at);
    }
    waiting.insert(waiting.end(), left.begin(), left.end());
    now += has_neighbour() ? std::chrono::milliseconds(12) : std::chrono::milliseconds(10);
    io.restart();  // it stops where there was nothing to do
    io.poll();
  }
  void run_until(const std::function<bool()>& is_so) {
    for (int i = 0; i < 100'000 && !is_so(); ++i) turn();
    ASSERT_TRUE(is_so());
  }
  void answer_one(std::size_t at, bool is_error) {
    const InstanceId instance = runner.delivered[at].first;
    const InvocationId invocation = runner.delivered[at].second.id;
    if (!invocations.answered({.invocation = invocation, .is_error = is_error, .payload = "\"said\""})) return;
    driver.tell([&](Core& core, Instant moment, Actions& out) {
      core.answered(moment, invocation, is_error, charges.used(instance, memory.report(instance, out)), out);
    });
    idle(instance);
  }
  void expect_nothing_left() {
    EXPECT_FALSE(is_there("f#trial"));
    EXPECT_FALSE(has_neighbour());
    for (const char* const name : {"f#trial", "f#beside", "f#filler0"}) {
      EXPECT_EQ(control.shares().entry(name), std::nullopt) << name;
    }
    // A call that went on is answered, or ends at its deadline; then its instance goes.
    answers = [](const std::string&) { return true; };
    for (int i = 0; i < 3; ++i) turn();
    EXPECT_EQ(driver.core().instances().size(), 0u);
  }

  Instant now{std::chrono::hours(1)};
  std::function<bool(const std::string&)> answers = [](const std::string&) { return true; };
  std::function<bool(const std::string&)> fails = [](const std::string&) { return false; };
  std::size_t served = 0;
  std::vector<std::size_t> waiting;  // calls, as runner.delivered has them
  Profiler profiler{io,
                    control,
                    functions,
                    invocations,
                    instances,
                    [](GpuId id) { return std::optional(Device{.id = id, .name = "V100"}); },
                    [this](FunctionProfile profile) { measured.push_back(std::move(profile)); },
                    [this] { return now; }};
  std::string failed() { return profiler.status("f")->failed; }
};

TEST_F(ProfilerWithNeighbour, TwoOfOneRectangleRunOnOneDevice) {
  ASSERT_TRUE(profiler.start(request(), true));
  run_until([this] { return has_neighbour(); });
  const auto trial = control.shares().entry("f#trial"), beside = control.shares().entry("f#beside");
  ASSERT_TRUE(trial && beside);
  EXPECT_EQ(trial->seats, beside->seats);
  EXPECT_EQ(trial->asked, beside->asked);
  EXPECT_LE(trial->asked.share.width_percent.value(), kWidestOfTwo);
  run_until([this] { return !profiler.is_running(); });
  EXPECT_EQ(failed(), "");
  ASSERT_EQ(measured.size(), 1u);
  ASSERT_TRUE(measured[0].beside) << measured[0].alone;
  EXPECT_NEAR(measured[0].beside->slowdown, 1.2, 0.01) << "10 ms alone, 12 ms beside it";
  expect_nothing_left();
}

TEST_F(ProfilerWithNeighbour, ANeighbourThatFailsIsLeftOut) {
  fails = [](const std::string& name) { return name == "f#beside"; };
  ASSERT_TRUE(profiler.start(request(), true));
  run_until([this] { return !profiler.is_running(); });
  EXPECT_EQ(failed(), "");
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_FALSE(measured[0].beside);
  EXPECT_EQ(measured[0].alone, "a call of the copy beside it failed: \"said\"");
  expect_nothing_left();
}

TEST_F(ProfilerWithNeighbour, ATrialThatFailsOnlyBesideANeighbourIsLeftOut) {
  fails = [this](const std::string& name) { return name == "f#trial" && has_neighbour(); };
  ASSERT_TRUE(profiler.start(request(), true));
  run_until([this] { return !profiler.is_running(); });
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_EQ(measured[0].alone, "a call of a trial failed: \"said\"");
  expect_nothing_left();
}

TEST_F(ProfilerWithNeighbour, ANeighbourWhoseProcessDiesIsLeftOut) {
  ASSERT_TRUE(profiler.start(request(), true));
  run_until([this] { return has_neighbour(); });
  for (int i = 0; i < 100; ++i) turn();  // both answer, and it measures
  const auto all = driver.core().instances();
  const FlowId flow = functions.find("f#beside")->flow;
  answers = [](const std::string& name) { return name != "f#beside"; };  // the next call of it is under way
  turn();
  for (const InstanceView& one : all) {
    if (one.flow == flow) gone(one.instance, "killed by signal 9");
  }
  run_until([this] { return !profiler.is_running(); });
  EXPECT_EQ(failed(), "");
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_FALSE(measured[0].beside);
  EXPECT_THAT(measured[0].alone, HasSubstr("a call of the copy beside it failed: "));
  expect_nothing_left();
}

TEST_F(ProfilerWithNeighbour, ANeighbourThatHangsIsLeftOut) {
  ASSERT_TRUE(profiler.start(request(), true));
  run_until([this] { return has_neighbour(); });
  for (int i = 0; i < 60; ++i) turn();
  answers = [](const std::string& name) { return name != "f#beside"; };
  run_until([this] { return !profiler.is_running(); });
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_FALSE(measured[0].beside);
  EXPECT_THAT(measured[0].alone, HasSubstr("the copy beside it did not answer for "));
  expect_nothing_left();
}

TEST_F(ProfilerWithNeighbour, StoppedInTheMiddleBothAreRemoved) {
  ASSERT_TRUE(profiler.start(request(), true));
  run_until([this] { return has_neighbour(); });
  for (int i = 0; i < 20; ++i) turn();
  profiler.stop("it was stopped by its caller");
  EXPECT_EQ(failed(), "it was stopped by its caller");
  EXPECT_THAT(measured, IsEmpty());
  expect_nothing_left();
  for (int i = 0; i < 20; ++i) turn();  // answers that come too late
  expect_nothing_left();
}

TEST_F(ProfilerWithNeighbour, AFunctionThatIsChangedBeforeTheNeighbourStartsHasNoProfile) {
  ASSERT_TRUE(profiler.start(request(), true));
  run_until([this] { return profiler.status("f")->trials.size() == 1; });
  functions.find("f")->record.revision_id = "another";
  run_until([this] { return !profiler.is_running(); });
  EXPECT_THAT(failed(), HasSubstr("was changed or deleted"));
  expect_nothing_left();
}

// Two of 9000 MiB are more than 16 GiB.
TEST_F(ProfilerWithNeighbour, WithoutRoomForTwoItIsLeftOutAndSaysSo) {
  functions.find("f")->record.config.tags["gpu:memory-mib"] = "9000";
  ASSERT_TRUE(profiler.start(request(), true));
  run_until([this] { return !profiler.is_running(); });
  EXPECT_EQ(failed(), "");
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_FALSE(measured[0].beside);
  EXPECT_THAT(measured[0].alone, HasSubstr("no GPU has room for two of "));
  expect_nothing_left();
}

// The first GPU has room for one of 7000 MiB beside another's 5000, the second for two.
TEST_F(ProfilerWithNeighbour, ADeviceWithRoomForOneIsPassedOver) {
  driver.core().add_gpu({.gpu = GpuId(2), .memory = gib(16)});
  control.shares().add_device({.id = GpuId(2), .name = "V100", .uuid = "GPU-b", .memory = gib(16)}, 32, 2);
  ASSERT_TRUE(admit("other", {{"gpu:quota-request", "1"}, {"gpu:compute-percent", "4"}, {"gpu:memory-mib", "5000"}}));
  functions.find("f")->record.config.tags["gpu:memory-mib"] = "7000";
  ASSERT_TRUE(profiler.start(request(), true));
  run_until([this] { return has_neighbour(); });
  EXPECT_EQ(control.shares().entry("f#trial")->seats, (ShareBook::Seats{GpuId(2)}));
  EXPECT_EQ(control.shares().entry("f#beside")->seats, (ShareBook::Seats{GpuId(2)}));
  EXPECT_EQ(control.shares().entry("f#filler0"), std::nullopt);
  run_until([this] { return !profiler.is_running(); });
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_TRUE(measured[0].beside) << measured[0].alone;
  expect_nothing_left();
}

TEST_F(ProfilerWithNeighbour, WithoutMpsOrWhereNobodyWantsItThereIsNone) {
  ASSERT_TRUE(profiler.start(request(), false));
  run_until([this] { return !profiler.is_running(); });
  ProfileRequest alone = request();
  alone.is_alone = true;
  ASSERT_TRUE(profiler.start(alone, true));
  run_until([this] { return !profiler.is_running(); });
  ASSERT_EQ(measured.size(), 2u);
  EXPECT_EQ(measured[0].alone, "the node does not run MPS (--sharing mps)");
  EXPECT_EQ(measured[1].alone, "its caller wants it alone");
}

}  // namespace
}  // namespace fairlead
