#include "runtime/device_servers/module_trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/check.h"
#include "base/clock.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

constexpr Duration kPatience = std::chrono::minutes(2);  // a busy machine may take long to start a process
constexpr std::uint64_t kBase = 0x700000000000;
constexpr char kWithVariable[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n.global .u32 v[1000000] = {7};\n"
    ".visible .entry f() { .reg .b32 %r; ld.global.u32 %r, [v]; ret; }\n";

constexpr char kModule[] = ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry f() { ret; }\n";

// With the test's own `fairlead device-server`, whose trials crash or hang while a file is there.
class ModuleTrialsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "fairlead-trials-XXXXXX").string();
    FL_CHECK(::mkdtemp(pattern.data()) != nullptr);
    home_ = pattern;
    use_trials(kPatience);
  }
  void TearDown() override {
    trials_.reset();
    fs::remove_all(home_);
  }

  void use_trials(Duration patience, std::size_t at_once = 2, int rests = 9, Duration longest_rest = 2s) {
    trials_ = std::make_unique<ModuleTrials>(
        io_, ModuleTrials::Options{.program = DEVICE_SERVER,
                                   .arguments = {SOFTGPU_FOLDER, "0", "0", "cost", "crash=" + home_ + "/crash",
                                                 "hang=" + home_ + "/hang"},
                                   .patience = patience,
                                   .at_once = at_once,
                                   .rests = rests,
                                   .longest_rest = longest_rest});
  }
  void make(const std::string& name) { std::ofstream(home_ + "/" + name) << "it is there"; }

  // As many modules as names, each a digest here.
  void start(std::uint64_t instance, const std::vector<std::string>& names, const std::string& code = kModule,
             const std::string& tenant = "a", std::uint64_t gpu = 1) {
    ModuleTrials::Request request{.instance = InstanceId(instance), .gpu = GpuId(gpu), .tenant = tenant};
    request.environment = {{"SOFTGPU_HOME", home_ + "/gpu"}};
    request.trial.session = instance;
    request.trial.range_base = range_base_;
    request.trial.range_bytes = range_base_ == 0 ? 0 : std::uint64_t{1} << 32;
    request.trial.guard_bytes = 64 << 10;
    request.trial.architecture = 70;
    for (const std::string& name : names) request.trial.modules.push_back({.sha256 = name, .code = code});
    trials_->start(std::move(request), [this, instance](const wire::FrameToServer& frame) {
      if (const auto* ended = std::get_if<wire::TrialEnded>(&frame)) ended_[ended->session] = *ended;
      if (const auto* fenced = std::get_if<wire::ModulesFenced>(&frame)) fenced_[instance] = *fenced;
      if (const auto* measured = std::get_if<wire::ModulesMeasured>(&frame)) {
        measured_[instance] = *measured;
        if (!places_.empty()) trials_->place(InstanceId(instance), {.session = instance, .addresses = places_});
      }
    });
  }
  wire::TrialEnded end_of(std::uint64_t instance) {
    const Instant end = monotonic_now() + kPatience;
    while (!ended_.contains(instance) && monotonic_now() < end) {
      io_.restart();
      io_.run_one_for(100ms);
    }
    return ended_.contains(instance) ? ended_.at(instance) : wire::TrialEnded{.error = "it has not ended"};
  }

  std::string home_;
  boost::asio::io_context io_;
  std::unique_ptr<ModuleTrials> trials_;
  std::map<std::uint64_t, wire::TrialEnded> ended_;
  std::map<std::uint64_t, wire::ModulesMeasured> measured_;
  std::map<std::uint64_t, wire::ModulesFenced> fenced_;
  std::vector<std::uint64_t> places_;  // of variables, when they are measured; none: nobody says it
  std::uint64_t range_base_ = 0;       // 0: modules are not fenced
};

TEST_F(ModuleTrialsTest, WhatTheDriverLoadsPasses) {
  start(1, {"x", "y"});
  EXPECT_EQ(end_of(1), (wire::TrialEnded{.session = 1, .module = 1, .error = ""}));
}

TEST_F(ModuleTrialsTest, TheDriversWordsAndTheModuleAreTold) {
  start(1, {"x"});
  ASSERT_EQ(end_of(1).error, "");
  start(2, {"x", "y"}, "no PTX");
  EXPECT_EQ(end_of(2).module, 1U);  // the first is known under its digest
  EXPECT_THAT(end_of(2).error, HasSubstr("the driver refuses the module"));
}

TEST_F(ModuleTrialsTest, ACompilerThatCrashesIsTold) {
  make("crash");
  start(1, {"x"});
  EXPECT_THAT(end_of(1).error, AllOf(HasSubstr("signal: Aborted"), HasSubstr("no device server has loaded it")));
}

TEST_F(ModuleTrialsTest, ACompilerThatNeverEndsIsEnded) {
  use_trials(200ms);
  make("hang");
  start(1, {"x"});
  EXPECT_THAT(end_of(1).error, HasSubstr("had not loaded it after 0.2 s"));
}

TEST_F(ModuleTrialsTest, WhatPassedOnAGpuIsNotTriedThereAgain) {
  start(1, {"x"});
  ASSERT_EQ(end_of(1).error, "");
  make("crash");
  start(2, {"x"}, kModule, "b");
  EXPECT_EQ(end_of(2).error, "");
  start(3, {"x"}, kModule, "a", /*gpu=*/2);
  EXPECT_NE(end_of(3).error, "");
  start(4, {"x", "y"});
  EXPECT_NE(end_of(4).error, "");
}

TEST_F(ModuleTrialsTest, WhatCrashedIsTriedAgain) {
  make("crash");
  start(1, {"x"});
  ASSERT_NE(end_of(1).error, "");
  fs::remove(home_ + "/crash");
  start(2, {"x"});
  EXPECT_EQ(end_of(2).error, "");
}

TEST_F(ModuleTrialsTest, AnotherTenantAndWhatPassedDoNotWaitForATrialThatHangs) {
  use_trials(10 * kPatience);  // the trial hangs until the test is over, however long the others take
  start(5, {"known"});
  ASSERT_EQ(end_of(5).error, "");
  make("hang");
  start(1, {"x"});
  // The process looks for the file when it starts, and it is the node's child before that.
  const Instant end = monotonic_now() + kPatience;
  while (!fs::exists(home_ + "/hanging") && monotonic_now() < end) {
    io_.restart();
    io_.run_one_for(1ms);
  }
  fs::remove(home_ + "/hang");
  start(2, {"y"});  // of the same tenant: waits
  start(4, {"known"});
  start(3, {"z"}, kModule, "b");
  EXPECT_EQ(end_of(4).error, "");
  EXPECT_EQ(end_of(3).error, "");
  EXPECT_FALSE(ended_.contains(1));
  EXPECT_FALSE(ended_.contains(2));
}

constexpr int kUntilTheTestIsOver = 1'000'000;

TEST_F(ModuleTrialsTest, ATenantRestsAfterATrialThatFailedAndNobodyElse) {
  use_trials(kPatience, 1, kUntilTheTestIsOver, 24h);
  start(1, {"x"}, "no PTX");
  ASSERT_NE(end_of(1).error, "");
  start(2, {"y"});
  start(3, {"z"}, kModule, "b");
  start(4, {"x"}, kModule, "b");
  EXPECT_EQ(end_of(3).error, "");
  EXPECT_EQ(end_of(4).error, "");
  EXPECT_FALSE(ended_.contains(2));
}

TEST_F(ModuleTrialsTest, ATenantWhoLeavesItsTrialRestsToo) {
  use_trials(kPatience, 1, kUntilTheTestIsOver, 24h);
  range_base_ = kBase;
  start(1, {"x"}, kWithVariable);
  const Instant end = monotonic_now() + kPatience;
  while (!measured_.contains(1) && monotonic_now() < end) {
    io_.restart();
    io_.run_one_for(10ms);
  }
  trials_->forget(InstanceId(1));
  range_base_ = 0;
  start(2, {"y"});
  start(3, {"z"}, kModule, "b");
  EXPECT_EQ(end_of(3).error, "");
  EXPECT_FALSE(ended_.contains(2));
}

TEST_F(ModuleTrialsTest, NobodyRestsForLongerThanTheLongestRest) {
  use_trials(kPatience, 1, kUntilTheTestIsOver, 1ms);
  start(1, {"x"}, "no PTX");
  ASSERT_NE(end_of(1).error, "");
  start(2, {"y"});
  EXPECT_EQ(end_of(2).error, "");
}

TEST_F(ModuleTrialsTest, WhatNobodyWaitsForIsNotAnswered) {
  start(1, {"x"});
  trials_->forget(InstanceId(1));
  start(2, {"y"});
  EXPECT_EQ(end_of(2).error, "");
  EXPECT_FALSE(ended_.contains(1));
}

TEST_F(ModuleTrialsTest, AModuleIsFencedForItsRangeBeforeItIsLoaded) {
  range_base_ = kBase;
  places_ = {kBase + 0x10000};
  start(1, {"x"}, kWithVariable);
  EXPECT_EQ(end_of(1).error, "");
  ASSERT_TRUE(measured_.contains(1));
  EXPECT_EQ(measured_[1].variable_bytes, std::vector<std::uint64_t>{4'000'000});
  ASSERT_EQ(fenced_[1].modules.size(), 1U);
  EXPECT_THAT(fenced_[1].modules[0].ptx, HasSubstr("0x700000010000"));
  ASSERT_EQ(fenced_[1].modules[0].variables.size(), 1U);
  EXPECT_LT(fenced_[1].modules[0].variables[0].bytes.size(), 100U) << "zeros need not travel";
}

TEST_F(ModuleTrialsTest, WhatPassedIsFencedAgainButNotLoaded) {
  range_base_ = kBase;
  places_ = {kBase};
  start(1, {"x"}, kWithVariable);
  ASSERT_EQ(end_of(1).error, "");
  start(2, {"x"}, ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry f() { bra NOWHERE; }\n");
  EXPECT_THAT(end_of(2).error, HasSubstr("no label")) << "the fence reads what comes, whatever its digest says";
  start(3, {"x"}, kWithVariable);
  EXPECT_EQ(end_of(3).error, "");
  EXPECT_EQ(fenced_[3], (wire::ModulesFenced{.session = 3, .modules = fenced_[1].modules}));
  places_ = {kBase + 4096};
  make("crash");
  start(4, {"x"}, kWithVariable);
  EXPECT_THAT(end_of(4).error, HasSubstr("signal: Aborted"));
}

TEST_F(ModuleTrialsTest, WhatCannotBeFencedIsToldOfItsModule) {
  range_base_ = kBase;
  places_ = {0, 0};
  start(1, {"x", "y"},
        ".version 6.0\n.target sm_70\n.address_size 64\n.func foo();\n.alias foo, nothere;\n"
        ".visible .entry f() { ret; }\n");
  EXPECT_EQ(end_of(1).module, 0U);
  EXPECT_THAT(end_of(1).error, AllOf(HasSubstr("cannot be fenced"), HasSubstr("alias 'foo'")));
  EXPECT_FALSE(fenced_.contains(1));
}

TEST_F(ModuleTrialsTest, AServerThatNeverPlacesVariablesHoldsNothingUp) {
  use_trials(300ms, 1);
  range_base_ = kBase;
  start(1, {"x"}, kWithVariable);
  EXPECT_THAT(end_of(1).error, HasSubstr("had not fenced it after 0.3 s"));
  use_trials(30s, 1);
  start(2, {"x"}, kWithVariable);
  const Instant end = monotonic_now() + 30s;
  while (!measured_.contains(2) && monotonic_now() < end) {
    io_.restart();
    io_.run_one_for(10ms);
  }
  trials_->forget(InstanceId(2));
  range_base_ = 0;
  start(3, {"z"});
  EXPECT_EQ(end_of(3).error, "");
}

}  // namespace
}  // namespace fairlead
