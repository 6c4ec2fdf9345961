#include "node/shared_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/sandbox_process.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SharedFolder : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root shares a folder with another user";
    char pattern[] = "/tmp/fairlead-shared-XXXXXX";
    dir_ = ::mkdtemp(pattern);
    folder_ = dir_ + "/gpu";
  }
  void TearDown() override {
    if (!dir_.empty()) fs::remove_all(dir_);
  }
  struct stat info() const {
    struct stat info {};
    EXPECT_EQ(::lstat(folder_.c_str(), &info), 0);
    return info;
  }
  void expect_shared() const {
    EXPECT_EQ(info().st_uid, 0u);
    EXPECT_EQ(info().st_gid, kSandboxUid);
    EXPECT_EQ(info().st_mode & 07777, 02710u);
  }

  std::string dir_;
  std::string folder_;
};

TEST_F(SharedFolder, IsMadeForTheGroupAndTwiceIsOnce) {
  ASSERT_TRUE(share_with_functions(folder_));
  expect_shared();
  std::ofstream(folder_ + "/trace.json") << "[";
  ASSERT_TRUE(share_with_functions(folder_));
  EXPECT_TRUE(fs::exists(folder_ + "/trace.json"));
}

TEST_F(SharedFolder, OfAToolOfRootsKeepsItsFiles) {
  fs::create_directory(folder_);
  std::ofstream(folder_ + "/machine") << "x";
  ASSERT_TRUE(share_with_functions(folder_));
  expect_shared();
  EXPECT_TRUE(fs::exists(folder_ + "/machine"));
}

TEST_F(SharedFolder, OfFunctionsIsTakenAndEmptiedWithoutFollowingLinks) {
  fs::create_directory(folder_);
  std::ofstream(dir_ + "/outside") << "x";
  std::ofstream(folder_ + "/machine") << "x";
  fs::create_symlink(dir_ + "/outside", folder_ + "/clients");
  ASSERT_EQ(::mkfifo((folder_ + "/slots").c_str(), 0666), 0);
  ASSERT_EQ(::chown(folder_.c_str(), kSandboxUid, kSandboxUid), 0);
  ASSERT_TRUE(share_with_functions(folder_));
  expect_shared();
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_TRUE(fs::exists(dir_ + "/outside"));
}

TEST_F(SharedFolder, OfSomebodyElseALinkAndACommonFolderAreRefused) {
  fs::create_directory(folder_);
  ASSERT_EQ(::chown(folder_.c_str(), 12345, 12345), 0);
  EXPECT_THAT(share_with_functions(folder_).error().message, HasSubstr("belongs to user 12345"));
  EXPECT_EQ(info().st_uid, 12345u);
  fs::remove(folder_);

  fs::create_directory(dir_ + "/other");
  fs::create_directory_symlink(dir_ + "/other", folder_);
  EXPECT_THAT(share_with_functions(folder_).error().message, HasSubstr("is a link or no folder"));
  fs::remove(folder_);

  fs::create_directory(folder_);
  std::ofstream(folder_ + "/letters") << "x";
  EXPECT_THAT(share_with_functions(folder_).error().message, HasSubstr("is used for other files"));
  EXPECT_EQ(info().st_gid, 0u);
}

}  // namespace
}  // namespace fairlead
