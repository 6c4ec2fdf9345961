// What happens between a registration's frame and its session: whose trial is asked for, who waits behind whom, what is left of one
// that is dropped. Planted and caught: two trials of a range at a time; a dropped trial that holds those behind it back; one that is
// loaded meanwhile and is tried all the same; a failed one that keeps the room of its variables.
#include "runtime/device_server/task_registrations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/device_server/testing/software_gpu.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kModule[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
    ".reg .b64 %a; .reg .b32 %v; ld.param.u64 %a, [p]; ld.global.u32 %v, [%a]; st.global.u32 [%a+4], %v; ret; }\n";

class TaskRegistrationsTest : public testing::Test {
 protected:
  explicit TaskRegistrationsTest(AddressSpaces spaces = AddressSpaces::kOne) : spaces_(spaces) {}

  // A task of one module; sessions that name the same module share it.
  void begin(std::uint64_t session, const std::string& module, const std::string& tenant = "acme") {
    KernelTask task;
    task.modules.push_back({.name = "m"});
    std::vector<UniqueFd> files;
    files.emplace_back(::memfd_create("module", MFD_CLOEXEC));
    const std::string code = std::string(kModule) + "// " + module + "\n";
    ASSERT_EQ(::write(files[0].get(), code.data(), code.size()), static_cast<ssize_t>(code.size()));
    wire::RegisterSession frame{.session = session, .tenant = tenant, .task = wire::encode(task)};
    frame.modules.push_back({.sha256 = module, .bytes = code.size(), .descriptor = 0});
    registrations_.begin(frame, files);
  }
  // The executor's part: its modules are loaded and stay so.
  bool take(TaskRegistration registration, const Status& status) {
    ended_.push_back(std::to_string(registration.frame.session) + (status ? "" : ": " + status.error().message));
    for (std::size_t m = 0; status && m < registration.keys.size(); ++m) {
      if (registration.modules[m]) continue;
      registration.modules[m] = modules_.find(registration.keys[m]);
      if (registration.modules[m]) continue;
      auto loaded = modules_.load(registration.keys[m], registration.code[m]);
      EXPECT_TRUE(loaded) << loaded.error().message;
      registration.modules[m] = *std::move(loaded);
    }
    for (const std::size_t m : registration.on_trial) modules_.forget_unless_loaded(registration.keys[m]);
    if (status) kept_.push_back(std::move(registration));
    return goes_on_;
  }
  std::vector<std::uint64_t> tried() const {
    std::vector<std::uint64_t> sessions;
    for (const wire::FrameToNode& frame : sent_) {
      if (const auto* trial = std::get_if<wire::ModuleTrial>(&frame)) sessions.push_back(trial->session);
    }
    return sessions;
  }

  static constexpr Bytes kMemory{32 << 20};

  const AddressSpaces spaces_;
  std::vector<wire::FrameToNode> sent_;
  std::vector<std::string> ended_;  // "1", "2: module m: why"
  bool goes_on_ = true;
  std::unique_ptr<DeviceObjects> objects_ =
      DeviceObjects::create(software_gpu(SOFTGPU_FOLDER), {.device = kMemory, .host = kMemory}, spaces_).value();
  TaskModules modules_{software_gpu(SOFTGPU_FOLDER), *objects_, spaces_, {}};
  std::vector<TaskRegistration> kept_;
  TaskRegistrations registrations_{
      *objects_,
      modules_,
      {.trials = true},
      [this](const wire::FrameToNode& frame) { sent_.push_back(frame); },
      [this](TaskRegistration registration, const Status& status) { return take(std::move(registration), status); }};
};

TEST_F(TaskRegistrationsTest, AModuleIsLoadedAfterItsTrialAndTriedOnce) {
  begin(1, "a");
  EXPECT_THAT(tried(), ElementsAre(1));
  EXPECT_THAT(ended_, IsEmpty());
  registrations_.tried({.session = 1});
  EXPECT_THAT(ended_, ElementsAre("1"));
  begin(2, "a");
  EXPECT_THAT(tried(), ElementsAre(1)) << "it is loaded";
  EXPECT_THAT(ended_, ElementsAre("1", "2"));
}

TEST_F(TaskRegistrationsTest, WhoComesDuringATrialWaitsAndNeedsNoneForTheSameModule) {
  begin(1, "a");
  begin(2, "a");
  begin(3, "b");
  begin(4, "a");
  EXPECT_THAT(tried(), ElementsAre(1));
  registrations_.tried({.session = 1});
  EXPECT_THAT(ended_, ElementsAre("1", "2"));
  EXPECT_THAT(tried(), ElementsAre(1, 3));
  registrations_.tried({.session = 3, .error = "it does not load"});
  EXPECT_THAT(ended_, ElementsAre("1", "2", "3: module m: it does not load", "4"));
}

TEST_F(TaskRegistrationsTest, OneThatIsDroppedHoldsNobodyBack) {
  begin(1, "a");
  begin(2, "b");
  begin(3, "c");
  EXPECT_TRUE(registrations_.drop(2));
  EXPECT_FALSE(registrations_.drop(2));
  EXPECT_THAT(tried(), ElementsAre(1));
  EXPECT_TRUE(registrations_.drop(1));
  EXPECT_THAT(tried(), ElementsAre(1, 3));
  registrations_.tried({.session = 1});  // it is late
  EXPECT_THAT(ended_, IsEmpty());
  registrations_.tried({.session = 3});
  EXPECT_THAT(ended_, ElementsAre("3"));
}

TEST_F(TaskRegistrationsTest, NothingMoreIsRegisteredInALostContext) {
  begin(1, "a");
  begin(2, "a");
  goes_on_ = false;
  registrations_.tried({.session = 1, .error = "unspecified launch failure"});
  EXPECT_THAT(ended_, testing::SizeIs(1));
  EXPECT_THAT(tried(), ElementsAre(1));
  EXPECT_TRUE(registrations_.drop(2));
  EXPECT_THAT(tried(), ElementsAre(1));
}

class FencedRegistrationsTest : public TaskRegistrationsTest {
 protected:
  FencedRegistrationsTest() : TaskRegistrationsTest(AddressSpaces::kPerTenant) {}
};

TEST_F(FencedRegistrationsTest, TenantsHaveTrialsOfTheirOwn) {
  begin(1, "a", "acme");
  begin(2, "a", "other");
  begin(3, "b", "acme");
  EXPECT_THAT(tried(), ElementsAre(1, 2));
  const auto& trial = std::get<wire::ModuleTrial>(sent_[0]);
  EXPECT_GT(trial.range_bytes, 0U);
  EXPECT_NE(trial.range_base, std::get<wire::ModuleTrial>(sent_[1]).range_base);
}

TEST_F(FencedRegistrationsTest, VariablesHaveAPlaceThatAFailedTrialGivesBack) {
  const std::uint64_t most = DeviceObjects::kVariables / 2;
  CUdeviceptr first = 0;
  for (std::uint64_t session = 1; session < 20; ++session) {
    begin(session, "m" + std::to_string(session));
    registrations_.measured({.session = session, .variable_bytes = {most / 64}});
    const auto* const placed = std::get_if<wire::VariablesPlaced>(&sent_.back());
    ASSERT_NE(placed, nullptr) << session;
    if (session == 1) first = placed->addresses.at(0);
    EXPECT_EQ(placed->addresses, std::vector<std::uint64_t>{first}) << session;
    registrations_.tried({.session = session, .error = "no"});
  }
  EXPECT_THAT(ended_.back(), HasSubstr("module m: no"));
}

TEST_F(FencedRegistrationsTest, WhatTheTrialFencedIsJudgedAgain) {
  begin(1, "a");
  registrations_.measured({.session = 1, .variable_bytes = {0}});
  wire::ModulesFenced fenced{.session = 1};
  fenced.modules.push_back({.ptx = kModule, .variables = {}});
  registrations_.fenced(fenced);
  ASSERT_THAT(ended_, testing::SizeIs(1));
  EXPECT_THAT(ended_[0], HasSubstr("a fault of the fence"));
}

}  // namespace
}  // namespace fairlead
