#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/check.h"
#include "gpu/checkpoint.h"
#include "gpu/driver.h"
#include "gpu/nvml.h"

namespace fairlead {
namespace {

using testing::HasSubstr;

// A folder whose only library is `target` under the given name.
class LibraryFolder {
 public:
  LibraryFolder(const std::string& name, const std::string& target)
      : path_((std::filesystem::temp_directory_path() / "fairlead-libs-XXXXXX").string()) {
    FL_CHECK(mkdtemp(path_.data()) != nullptr);
    std::filesystem::create_symlink(target, path_ + "/" + name);
  }
  LibraryFolder(const LibraryFolder&) = delete;
  ~LibraryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Nvml, ReadsEveryDevice) {
  LibraryFolder folder("libnvidia-ml.so.1", FAKE_GPU_LIBRARIES);
  auto nvml = Nvml::load(folder.path()).value();
  auto devices = nvml->devices().value();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "Fake 0");
  EXPECT_EQ(devices[1].uuid, "GPU-1");
  EXPECT_EQ(devices[0].memory_total, gib(16));
  EXPECT_EQ(devices[0].memory_used, gib(4));
  EXPECT_EQ(devices[0].utilisation, std::optional<double>(0.75));
  EXPECT_EQ(devices[1].utilisation, std::nullopt);  // as in MIG mode
  EXPECT_EQ(devices[1].mig_enabled, std::optional<bool>(true));
  EXPECT_EQ(nvml->driver_version().value(), "580.0");
  EXPECT_THAT(nvml->library_path(), HasSubstr("libnvidia-ml.so.1"));
}

TEST(Nvml, ListsMoreProcessesThanTheFirstGuess) {
  LibraryFolder folder("libnvidia-ml.so.1", FAKE_GPU_LIBRARIES);
  auto nvml = Nvml::load(folder.path()).value();
  auto processes = nvml->processes(0).value();
  ASSERT_EQ(processes.size(), 100u);
  EXPECT_EQ(processes[0].memory, Bytes(0));  // not available
  EXPECT_EQ(processes[99].pid, 100);
  EXPECT_EQ(processes[99].memory, Bytes(99));
  EXPECT_THAT(nvml->processes(7).error().message, HasSubstr("GPU 7"));
}

TEST(CudaDriver, ReadsVersionAndDevices) {
  LibraryFolder folder("libcuda.so.1", FAKE_GPU_LIBRARIES);
  auto driver = CudaDriver::load(folder.path()).value();
  EXPECT_EQ(driver->version().value(), "12.4");
  auto devices = driver->devices().value();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].memory, gib(16));
  EXPECT_EQ(devices[0].compute_major, 9);
}

TEST(GpuLibraries, MissingLibraryIsUnavailableAndSaysWhatToInstall) {
  auto nvml = Nvml::load("/nonexistent");
  ASSERT_FALSE(nvml);
  EXPECT_EQ(nvml.error().code, Errc::kUnavailable);
  EXPECT_THAT(nvml.error().message, HasSubstr("/nonexistent/libnvidia-ml.so.1"));
  EXPECT_THAT(nvml.error().message, HasSubstr("install the NVIDIA driver"));
  EXPECT_EQ(CudaDriver::load("/nonexistent").error().code, Errc::kUnavailable);
}

TEST(GpuLibraries, WrongLibraryIsNamedWithTheMissingSymbol) {
  LibraryFolder folder("libnvidia-ml.so.1", ANOTHER_LIBRARY);
  auto nvml = Nvml::load(folder.path());
  ASSERT_FALSE(nvml);
  EXPECT_EQ(nvml.error().code, Errc::kUnavailable);
  EXPECT_THAT(nvml.error().message, HasSubstr("nvmlInit_v2"));
}

TEST(ProcessCheckpoints, AnOldDriverIsRefusedWithWhatIsNeeded) {
  LibraryFolder folder("libcuda.so.1", FAKE_GPU_LIBRARIES);
  const auto checkpoints = ProcessCheckpoints::load(folder.path());
  ASSERT_FALSE(checkpoints);
  EXPECT_EQ(checkpoints.error().code, Errc::kUnavailable);
  EXPECT_THAT(checkpoints.error().message, HasSubstr("the driver /tmp/fairlead-libs-"));
  EXPECT_THAT(checkpoints.error().message, HasSubstr("CUDA 12.4"));
  EXPECT_THAT(checkpoints.error().message, HasSubstr("driver 570"));
}

// The libraries of softgpu/, where they were built.
TEST(GpuLibraries, SoftwareGpuAnswersBothViews) {
  if (!std::filesystem::exists(SOFTGPU_FOLDER "/libnvidia-ml.so.1")) GTEST_SKIP() << "softgpu is not built";
  char state[] = "/tmp/fairlead-softgpu-XXXXXX";
  ASSERT_NE(mkdtemp(state), nullptr);
  setenv("SOFTGPU_HOME", state, 1);
  auto nvml = Nvml::load(SOFTGPU_FOLDER);
  ASSERT_TRUE(nvml) << nvml.error().message;
  auto driver = CudaDriver::load(SOFTGPU_FOLDER);
  ASSERT_TRUE(driver) << driver.error().message;
  auto seen_by_nvml = (*nvml)->devices().value();
  auto seen_by_driver = (*driver)->devices().value();
  ASSERT_EQ(seen_by_nvml.size(), seen_by_driver.size());
  ASSERT_FALSE(seen_by_nvml.empty());
  EXPECT_EQ(seen_by_nvml[0].name, seen_by_driver[0].name);
  EXPECT_GT(seen_by_nvml[0].memory_total, gib(1));
  EXPECT_LE(seen_by_nvml[0].memory_used, seen_by_nvml[0].memory_total);
  auto checkpoints = ProcessCheckpoints::load(SOFTGPU_FOLDER);
  ASSERT_TRUE(checkpoints) << checkpoints.error().message;
  ASSERT_TRUE((*checkpoints)->start());
  using State = ProcessCheckpoints::State;
  using Outcome = ProcessCheckpoints::Outcome;
  EXPECT_EQ((*checkpoints)->state(getppid()), std::nullopt);
  EXPECT_EQ((*checkpoints)->restore(getpid()).outcome, Outcome::kWrongState);
  EXPECT_EQ((*checkpoints)->lock(getpid(), std::chrono::milliseconds(100)).outcome, Outcome::kDone);
  EXPECT_EQ((*checkpoints)->checkpoint(getpid()).outcome, Outcome::kDone);
  EXPECT_EQ((*checkpoints)->state(getpid()), State::kCheckpointed);
  EXPECT_EQ((*checkpoints)->restore(getpid()).outcome, Outcome::kDone);
  EXPECT_EQ((*checkpoints)->unlock(getpid()).outcome, Outcome::kDone);
  EXPECT_EQ((*checkpoints)->state(getpid()), State::kRunning);
  EXPECT_EQ((*checkpoints)->lock(getppid(), std::chrono::milliseconds(100)).outcome, Outcome::kRefused);
  unsetenv("SOFTGPU_HOME");
  std::filesystem::remove_all(state);
}

}  // namespace
}  // namespace fairlead
