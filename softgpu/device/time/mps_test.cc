#include "softgpu/device/time/mps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "softgpu/device/device_testing.h"

namespace softgpu {
namespace {

using ::testing::ElementsAre;
using testing::Environment;
using ::testing::HasSubstr;
using testing::kSmall;
using ::testing::Pair;
using testing::TemporaryHome;

class MpsTest : public ::testing::Test {
 protected:
  Result<ClientShare> share_of(const Mps& mps, const MpsEnvironment& environment) const {
    return client_share(machine_, mps, environment, 0, 0);
  }

  const TemporaryHome home_{Environment{{"SOFTGPU_PROFILE", "v100-16"}}};
  const Machine machine_ = open_machine().value();
};

TEST_F(MpsTest, WithoutADaemonAProcessTakesTurnsOnAllSms) {
  const auto share = client_share(machine_, std::nullopt, {.percentage = "10"}, 0, 0);
  EXPECT_FALSE(share->mps);
  EXPECT_EQ(share->sms, 80U);
}

TEST_F(MpsTest, PercentagesAreRoundedUpToWholeSms) {
  EXPECT_EQ(share_of({}, {.percentage = "30"})->sms, 24U);
  EXPECT_EQ(share_of({}, {.percentage = "33"})->sms, 27U);
  EXPECT_EQ(share_of({}, {.percentage = "1"})->sms, 1U);
  EXPECT_EQ(share_of({}, {})->sms, 80U);
}

TEST_F(MpsTest, AClientCannotExceedTheDaemonsDefault) {
  EXPECT_EQ(share_of({.default_percentage = 50}, {.percentage = "90"})->sms, 40U);
  EXPECT_EQ(share_of({.default_percentage = 50}, {.percentage = "20"})->sms, 16U);
  EXPECT_EQ(share_of({.default_percentage = 50}, {})->sms, 40U);
}

TEST_F(MpsTest, AnotherPipeDirectoryMeansNoMps) {
  EXPECT_FALSE(share_of({}, {.pipe_directory = "/dev/null"})->mps);
  EXPECT_TRUE(share_of({}, {.pipe_directory = "/tmp/nvidia-mps/"})->mps);
  EXPECT_TRUE(share_of({.pipe_directory = "/run/mps"}, {.pipe_directory = "/run/mps"})->mps);
  EXPECT_FALSE(share_of({.pipe_directory = "/run/mps"}, {})->mps);
}

TEST_F(MpsTest, ADaemonServesItsDevicesOnly) {
  EXPECT_TRUE(share_of({.devices = {0, 2}}, {})->mps);
  EXPECT_FALSE(share_of({.devices = {1}}, {})->mps);
}

TEST_F(MpsTest, TheDaemonOfAPipeDirectoryIsFoundWhileItHoldsItsLock) {
  const std::string pipe = machine_.path("pipe");
  ASSERT_EQ(::mkdir(pipe.c_str(), 0700), 0);
  const MpsEnvironment environment{.pipe_directory = pipe};
  EXPECT_FALSE(find_mps(machine_, environment)->has_value());
  std::ofstream(pipe + "/" + kMpsSettingsFile) << mps_text({.default_percentage = 40, .devices = {0}});
  const int lock = ::open((pipe + "/" + kMpsLockFile).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  EXPECT_FALSE(find_mps(machine_, environment)->has_value()) << "left behind by one that was killed";
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  const auto found = find_mps(machine_, environment);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->devices, std::set<unsigned>{0});
  EXPECT_EQ(client_share(machine_, *found, environment, 0, 0)->sms, 32U);
  ::close(lock);
  ASSERT_TRUE(start_mps(machine_, {.pipe_directory = pipe}));
  EXPECT_EQ(client_share(machine_, *find_mps(machine_, environment), environment, 0, 0)->sms, 80U);
}

TEST_F(MpsTest, MemoryLimitsNameTheClientsDevices) {
  EXPECT_EQ(share_of({}, {.memory_limits = "0=4G,1=512M"})->memory_limit, 4ULL << 30);
  EXPECT_EQ(client_share(machine_, Mps(), {.memory_limits = "0=4G,1=512M"}, 0, 1)->memory_limit, 512ULL << 20);
  EXPECT_EQ(share_of({.memory_limits = {{0, 1ULL << 30}}}, {})->memory_limit, 1ULL << 30);
  EXPECT_EQ(share_of({}, {})->memory_limit, 0U);
}

TEST_F(MpsTest, WrongVariablesAreNamed) {
  EXPECT_THAT(share_of({}, {.percentage = "0"}).error(), HasSubstr("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is '0'"));
  EXPECT_THAT(share_of({}, {.percentage = "101"}).error(), HasSubstr("between 1 and 100"));
  EXPECT_THAT(share_of({}, {.priority = "2"}).error(), HasSubstr("CUDA_MPS_CLIENT_PRIORITY"));
  EXPECT_THAT(share_of({}, {.memory_limits = "4G"}).error(), HasSubstr("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: '4G'"));
}

TEST(MpsLimits, AreParsedExactly) {
  EXPECT_THAT(*parse_memory_limits("0=4G,3=7K"), ElementsAre(Pair(0, 4ULL << 30), Pair(3, 7ULL << 10)));
  EXPECT_TRUE(parse_memory_limits("")->empty());
  for (const char* wrong : {"0", "=4G", "0=G", "0=4", "0=4T", "0=0G", "99=1G", "0=1G,0=2G", "0=18446744073709551615G",
                            "0=-1G", ",", "0=1G,"}) {
    const bool refused = !parse_memory_limits(wrong);
    EXPECT_EQ(refused, std::string(wrong) != "0=1G,") << wrong;
  }
}

TEST_F(MpsTest, TheDaemonsFileKeepsEverything) {
  EXPECT_FALSE(read_mps(machine_)->has_value());
  const Mps mps{"/run/mps", 40, {{0, 3ULL << 20}, {2, 1ULL << 30}}, 7, {0, 3}, true};
  ASSERT_TRUE(start_mps(machine_, mps));
  const Mps read = read_mps(machine_)->value();
  EXPECT_EQ(read.pipe_directory, mps.pipe_directory);
  EXPECT_EQ(read.default_percentage, 40U);
  EXPECT_EQ(read.memory_limits, mps.memory_limits);
  EXPECT_EQ(read.devices, mps.devices);
  EXPECT_EQ(read.max_contexts, 7U);
  EXPECT_TRUE(read.faults_shared);
  ASSERT_TRUE(stop_mps(machine_));
  EXPECT_FALSE(read_mps(machine_)->has_value());
  EXPECT_TRUE(stop_mps(machine_));
}

TEST_F(MpsTest, ADamagedFileIsRefusedWithAdvice) {
  for (const char* content :
       {"", "pipe_directory\n", "pipe_directory = /x\ndefault_percentage = 900\n", "wheels = 4\n"}) {
    std::ofstream(machine_.path("mps")) << content;
    const auto mps = read_mps(machine_);
    ASSERT_FALSE(mps) << content;
    EXPECT_THAT(mps.error(), HasSubstr("softgpu reset"));
  }
}

}  // namespace
}  // namespace softgpu
