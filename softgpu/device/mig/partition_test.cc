// The partition in the shared state: across processes, and what remains of one that is killed.
#include "softgpu/device/mig/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "softgpu/device/device.h"
#include "softgpu/device/files.h"
#include "softgpu/device/testing.h"

namespace softgpu {
namespace {

using testing::Child;
using testing::Environment;
using ::testing::HasSubstr;
using testing::TemporaryHome;

const Environment kA100 = {{"SOFTGPU_PROFILE", "a100-40"}, {"SOFTGPU_MEMORY_SCALE", "64"}};
const Environment kH100 = {{"SOFTGPU_PROFILE", "h100-80"}, {"SOFTGPU_MEMORY_SCALE", "64"}};

struct Host {
  Machine machine = open_machine().value();
  Clients clients = Clients::open(machine).value();
  Partition partition{machine, clients, 0};

  GpuSettings settings() const { return read_settings(machine, 0).value(); }
  const MigProfile& profile(const char* name) const { return *mig_geometry(machine, 0).find(name); }
  std::vector<Part> parts() const { return mig_parts(machine, 0, settings().mig); }
};

// A process with a context on the whole GPU, or on its first compute instance.
Child user_of(bool mig) {
  return Child([mig] {
    auto& host = *new Host;
    const Owner self = host.clients.join().value();
    const Part part = mig ? host.parts().front() : whole_gpu(host.machine, 0);
    auto device = Device::open(host.machine, host.clients, self, part).value();
    EXPECT_EQ(device.release()->attach(), Device::Refusal::kNone);
  });
}

TEST(Partition, IsTheSameForOtherProcesses) {
  const TemporaryHome home(kA100);
  Host host;
  ASSERT_TRUE(host.partition.set_mode(true));
  ASSERT_TRUE(host.partition.create_all({&host.profile("3g.20gb"), &host.profile("1g.5gb")}));
  const Host other;
  const GpuSettings settings = other.settings();
  EXPECT_TRUE(settings.mig.enabled());
  ASSERT_EQ(settings.mig.instances().size(), 2U);
  EXPECT_EQ(settings.mig.instances()[0].profile->name, "3g.20gb");
  EXPECT_EQ(settings.mig.instances()[0].compute[0].uuid, host.settings().mig.instances()[0].compute[0].uuid);
}

TEST(Partition, ARecreatedInstanceHasItsIdAndAnotherUuid) {
  const TemporaryHome home(kA100);
  Host host;
  ASSERT_TRUE(host.partition.set_mode(true));
  const unsigned first = host.partition.create_all({&host.profile("2g.10gb")}).value().front();
  const Uuid uuid = host.parts().front().uuid;
  ASSERT_TRUE(host.partition.destroy_with_compute(first));
  const unsigned second = host.partition.create_all({&host.profile("2g.10gb")}).value().front();
  EXPECT_EQ(first, second);
  EXPECT_NE(host.parts().front().uuid, uuid);
}

TEST(Partition, ASliceIsADeviceOfItsOwnSize) {
  const TemporaryHome home(kA100);
  Host host;
  ASSERT_TRUE(host.partition.set_mode(true));
  const unsigned id = host.partition.create(host.profile("3g.20gb"), {}).value();
  ASSERT_TRUE(host.partition.create_compute(id, 2, {}));
  ASSERT_TRUE(host.partition.create_compute(id, 1, {}));
  const std::vector<Part> parts = host.parts();
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].profile.name, "NVIDIA A100-SXM4-40GB MIG 2c.3g.20gb");
  EXPECT_EQ(parts[0].profile.sm_count, 28U);
  EXPECT_EQ(parts[1].profile.sm_count, 14U);
  EXPECT_EQ(parts[0].memory_bytes, (19968ULL << 20) / 64);
  EXPECT_EQ(parts[0].memory_files, parts[1].memory_files);  // compute instances share memory, not SMs
  EXPECT_NE(parts[0].compute_files, parts[1].compute_files);
}

TEST(Partition, IsNotTakenFromThoseWhoUseItUntilTheyDie) {
  const TemporaryHome home(kA100);
  Host host;
  ASSERT_TRUE(host.partition.set_mode(true));
  const unsigned id = host.partition.create_all({&host.profile("1g.5gb")}).value().front();
  Child user = user_of(true);
  ASSERT_TRUE(user.ran());
  EXPECT_EQ(host.partition.destroy_compute({id, 0}).error(), MigError::kInUse);
  EXPECT_EQ(host.partition.destroy_with_compute(id).error(), MigError::kInUse);
  EXPECT_EQ(host.parts().size(), 1U);
  user.kill();
  EXPECT_TRUE(host.partition.destroy_with_compute(id));
  EXPECT_TRUE(host.parts().empty());
}

TEST(Partition, ModeOfAUsedGpuPendsBeforeHopperAndIsRefusedLater) {
  {
    const TemporaryHome home(kA100);
    Host host;
    Child user = user_of(false);
    EXPECT_EQ(host.partition.set_mode(true).error(), MigError::kResetRequired);
    EXPECT_TRUE(host.settings().mig.pending());
    EXPECT_EQ(host.partition.reset().error(), MigError::kInUse);
    user.kill();
    EXPECT_TRUE(host.partition.reset());
    EXPECT_TRUE(host.settings().mig.enabled());
  }
  const TemporaryHome home(kH100);
  Host host;
  const Child user = user_of(false);
  EXPECT_EQ(host.partition.set_mode(true).error(), MigError::kInUse);
  EXPECT_FALSE(host.settings().mig.pending());
}

TEST(Partition, AContextCannotBeginOnWhatIsGone) {
  const TemporaryHome home(kA100);
  Host host;
  const Owner self{0, 1};
  const auto whole = Device::open(host.machine, host.clients, self, 0).value();
  ASSERT_TRUE(host.partition.set_mode(true));
  EXPECT_EQ(whole->attach(), Device::Refusal::kGone);
  const unsigned id = host.partition.create_all({&host.profile("1g.5gb")}).value().front();
  const auto slice = Device::open(host.machine, host.clients, self, host.parts().front()).value();
  ASSERT_TRUE(host.partition.destroy_with_compute(id));
  EXPECT_EQ(slice->attach(), Device::Refusal::kGone);
  ASSERT_TRUE(host.partition.create_all({&host.profile("1g.5gb")}));  // the same id, another instance
  EXPECT_EQ(slice->attach(), Device::Refusal::kGone);
}

TEST(Partition, ExclusiveModeAdmitsOneProcess) {
  const TemporaryHome home(kA100);
  Host host;
  const auto device = Device::open(host.machine, host.clients, Owner{9, 9}, 0).value();
  ASSERT_TRUE(host.partition.set_compute_mode(ComputeMode::kExclusiveProcess));
  Child user = user_of(false);
  ASSERT_TRUE(user.ran());
  EXPECT_EQ(device->attach(), Device::Refusal::kBusy);
  user.kill();
  EXPECT_EQ(device->attach(), Device::Refusal::kNone);
  device->detach();
  ASSERT_TRUE(host.partition.set_compute_mode(ComputeMode::kProhibited));
  EXPECT_EQ(device->attach(), Device::Refusal::kBusy);
}

TEST(Partition, AKilledChangerLeavesNoLock) {
  const TemporaryHome home(kA100);
  Host host;
  Child changer([] {
    const Machine machine = open_machine().value();
    new FolderLock(machine.home);
  });
  ASSERT_TRUE(changer.ran());
  changer.kill();
  EXPECT_TRUE(host.partition.set_mode(true));
}

TEST(Partition, ChangesOfManyProcessesAreAllMade) {
  const TemporaryHome home(kA100);
  Host host;
  ASSERT_TRUE(host.partition.set_mode(true));
  std::vector<int> pids;
  for (int i = 0; i < 7; ++i) {
    const int pid = ::fork();
    if (pid == 0) {
      Host own;
      ::_exit(own.partition.create_all({&own.profile("1g.5gb")}) ? 0 : 1);
    }
    pids.push_back(pid);
  }
  for (const int pid : pids) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(host.parts().size(), 7U);
  EXPECT_EQ(host.partition.create_all({&host.profile("1g.5gb")}).error(), MigError::kInsufficient);
}

TEST(GpuSettings, DamageIsRefusedWithAdvice) {
  const TemporaryHome home(kA100);
  Host host;
  for (const char* text : {"", "compute_mode = 1\nmig = 0 0\n", "compute_mode = 0\nmig = 1\n",
                           "compute_mode = 0\nmig = 1 1\ngpu_instance_7 = 3g.20gb 0\n",
                           "compute_mode = 0\nmig = 1 1\ncompute_instance_7_0 = 0 1 x\n",
                           "compute_mode = 0\nmig = 0 0\ngpu_instance_1 = 3g.20gb 0\n"}) {
    std::ofstream(home.path() + "/device0.settings") << text;
    const auto settings = read_settings(host.machine, 0);
    ASSERT_FALSE(settings) << text;
    EXPECT_THAT(settings.error(), HasSubstr("softgpu reset"));
  }
}

TEST(Users, BusyTimeSlidesOverHalfASecond) {
  const TemporaryHome home(kA100);
  Host host;
  const auto view = DeviceView::open(host.machine, host.clients, 0).value();
  Users users = view->users();
  const Owner self{3, 1};
  constexpr std::uint64_t kMs = 1'000'000;
  const std::uint64_t start = 1000 * 500 * kMs;  // the beginning of a window
  users.begin(self, start);
  EXPECT_NEAR(users.busy(self, start + 100 * kMs), 0.2, 0.01);  // while it computes
  users.end(self, start + 200 * kMs);
  EXPECT_NEAR(users.busy(self, start + 500 * kMs - 1), 0.4, 0.01);
  EXPECT_NEAR(users.busy(self, start + 600 * kMs), 0.32, 0.01);
  users.begin(self, start + 450 * kMs);
  EXPECT_NEAR(users.busy(self, start + 600 * kMs), (100 + 250 * 0.8) / 500, 0.01);
  users.end(self, start + 600 * kMs);
  EXPECT_NEAR(users.busy(self, start + 600 * kMs), (100 + 250 * 0.8) / 500, 0.01);
  EXPECT_EQ(users.busy(self, start + 1600 * kMs), 0);
  users.begin(self, start + 1600 * kMs);
  EXPECT_EQ(users.busy(self, start + 5000 * kMs), 1);
  users.add(self);  // the next process of the slot
  EXPECT_EQ(users.busy(self, start + 5000 * kMs), 0);
}

}  // namespace
}  // namespace softgpu
