#include "softgpu/device/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "softgpu/device/device.h"
#include "softgpu/device/testing.h"

namespace softgpu {
namespace {

using testing::Environment;
using ::testing::HasSubstr;
using testing::TemporaryHome;

const Environment kSmall = {{"SOFTGPU_MEMORY_SCALE", "64"}};

TEST(Machine, FirstProcessDecidesAndLaterEnvironmentIsIgnored) {
  const TemporaryHome home(
      Environment{{"SOFTGPU_PROFILE", "a30"}, {"SOFTGPU_DEVICES", "3"}, {"SOFTGPU_MODE", "model"}});
  const Machine first = open_machine().value();
  ::setenv("SOFTGPU_PROFILE", "h100-80", 1);
  const Machine second = open_machine().value();
  EXPECT_EQ(second.profile(2).name, "NVIDIA A30");
  EXPECT_EQ(second.device_count, 3U);
  EXPECT_EQ(second.mode, Mode::kModel);
  EXPECT_EQ(uuid_text(first, 1), uuid_text(second, 1));
  EXPECT_NE(uuid_text(first, 0), uuid_text(first, 1));
}

TEST(Machine, BadEnvironmentIsRefusedByName) {
  const TemporaryHome home(Environment{{"SOFTGPU_DEVICES", "99"}});
  const auto machine = open_machine();
  ASSERT_FALSE(machine);
  EXPECT_THAT(machine.error(), HasSubstr("devices is '99'"));
}

TEST(Machine, DamagedStateIsRefusedWithAdvice) {
  const TemporaryHome home;
  std::ofstream(home.path() + "/machine") << "version = 99\n";  // and nothing else that is ours
  EXPECT_THAT(open_machine().error(), HasSubstr("softgpu reset"));
}

TEST(Machine, TruncatedControlSegmentIsRefusedWithAdvice) {
  const TemporaryHome home(kSmall);
  const Machine machine = open_machine().value();
  const Clients clients = Clients::open(machine).value();
  std::ofstream(home.path() + "/device0.control") << "short";
  const auto view = DeviceView::open(machine, clients, 0);
  ASSERT_FALSE(view);
  EXPECT_THAT(view.error(), HasSubstr("softgpu reset"));
}

TEST(Machine, AListOfProfilesGivesEachDeviceItsOwn) {
  const TemporaryHome home(Environment{{"SOFTGPU_PROFILE", "a100-40,a30"}, {"SOFTGPU_DEVICES", "3"}});
  const Machine machine = open_machine().value();
  EXPECT_EQ(machine.profile(0).name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(machine.profile(1).name, "NVIDIA A30");
  EXPECT_EQ(machine.profile(2).name, "NVIDIA A30");
  EXPECT_GT(machine.memory_bytes(0), machine.memory_bytes(1));
}

TEST(Machine, FewerDevicesThanProfilesAreRefused) {
  const TemporaryHome home(Environment{{"SOFTGPU_PROFILE", "a100-40,a30"}, {"SOFTGPU_DEVICES", "1"}});
  EXPECT_THAT(open_machine().error(), HasSubstr("between 2 and 16"));
}

TEST(Machine, ChangesAreSeenByWhoOpensItNext) {
  const TemporaryHome home(Environment{{"SOFTGPU_TIME_SCALE", "0.125"}});
  const Machine before = open_machine().value();
  const auto changed = change_machine([](Machine& machine) -> Status {
    machine.profiles.push_back(parse_profile(*load_profile_text("h100-80")).value());
    ++machine.device_count;
    return {};
  });
  ASSERT_TRUE(changed) << changed.error();
  const Machine after = open_machine().value();
  EXPECT_EQ(after.id, before.id);
  EXPECT_EQ(after.time_scale, 0.125);
  ASSERT_EQ(after.device_count, 2U);
  EXPECT_EQ(after.profile(0).name, before.profile(0).name);
  EXPECT_EQ(after.profile(1).compute_major, 9);
}

TEST(Machine, ARefusedChangeLeavesEverythingAsItWas) {
  const TemporaryHome home;
  open_machine().value();
  const auto changed = change_machine([](Machine& machine) -> Status {
    machine.mode = Mode::kModel;
    return failure("no");
  });
  EXPECT_EQ(changed.error(), "no");
  EXPECT_EQ(open_machine()->mode, Mode::kFast);
}

}  // namespace
}  // namespace softgpu
