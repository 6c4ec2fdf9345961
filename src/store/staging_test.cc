#include "store/staging.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>

#include "store/test_folder.h"

namespace fairlead::store {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

// What this thread asks of the disk while a test listens: "syncfs half" for a folder whose final name is not there yet,
// "fsync whole" once it is.
struct DiskLog {
  std::string final_path;
  std::vector<std::string> calls;
  bool fails = false;
};
thread_local DiskLog* disk_log = nullptr;

int note(const char* call, long number, int fd) {
  if (disk_log != nullptr) {
    disk_log->calls.push_back(call + std::string(fs::exists(disk_log->final_path) ? " whole" : " half"));
    if (disk_log->fails) {
      errno = EIO;
      return -1;
    }
  }
  return static_cast<int>(::syscall(number, fd));
}

}  // namespace
}  // namespace fairlead::store

// In place of the C library's, for this program.
extern "C" int syncfs(int fd) noexcept {
  return fairlead::store::note("syncfs", SYS_syncfs, fd);
}
extern "C" int fsync(int fd) {
  return fairlead::store::note("fsync", SYS_fsync, fd);
}

namespace fairlead::store {
namespace {

struct StagingTest : testing::Test {
  ~StagingTest() override { disk_log = nullptr; }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder.path())) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
  Status install(const std::string& content) {
    const auto staging = Staging::create(folder.path()).value();
    fs::create_directory(staging.path() + "/tree");
    std::ofstream(staging.path() + "/tree/file") << content;
    return install_folder(staging.path() + "/tree", log.final_path);
  }

  TestFolder folder;
  DiskLog log{.final_path = folder / "final"};
};

TEST_F(StagingTest, ItsContentIsOnDiskBeforeItsNameAndThenItsName) {
  disk_log = &log;
  ASSERT_TRUE(install("one"));
  EXPECT_THAT(log.calls, ElementsAre("syncfs half", "fsync whole"));
  EXPECT_EQ(folder.read("final/file"), "one");
}

TEST_F(StagingTest, WhatCannotBeSyncedGetsNoName) {
  log.fails = true;
  disk_log = &log;
  const Status installed = install("one");
  ASSERT_FALSE(installed);
  EXPECT_EQ(installed.error().code, Errc::kIo);
  EXPECT_THAT(names(), ElementsAre());
}

TEST_F(StagingTest, WhatIsThereAlreadyStays) {
  ASSERT_TRUE(install("one"));
  ASSERT_TRUE(install("two"));  // of the same name, so the same content
  EXPECT_EQ(folder.read("final/file"), "one");
  EXPECT_THAT(names(), ElementsAre("final"));
}

TEST_F(StagingTest, AFolderIsReadableForFunctionsAndGoesWithItsOwner) {
  std::string path;
  {
    auto first = Staging::create(folder / "deep/below").value();
    const Staging staging = std::move(first);
    path = staging.path();
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0755u);
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(StagingTest, ClearingUpLeavesWhatIsUsedAndWhatThisProcessFills) {
  folder.write("used/file", "");
  folder.write("unused/file", "");
  folder.write("staging-1-other/file", "");
  const auto own = Staging::create(folder.path()).value();
  remove_unused_folders(folder.path(), {folder / "used"}, "thing");
  EXPECT_THAT(names(), ElementsAre(fs::path(own.path()).filename().string(), "used"));
}

}  // namespace
}  // namespace fairlead::store
