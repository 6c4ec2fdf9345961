#include "runtime/writable_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t kOwner = 64321;
constexpr uid_t kInstance = 64400;

class WritableFolderTest : public testing::Test {
 protected:
  WritableFolderTest() {
    std::string name = (fs::temp_directory_path() / "writable-XXXXXX").string();
    closed = ::mkdtemp(name.data());
    folder = closed / "folder";
    fs::create_directory(folder);
    std::ofstream(folder / "file") << "text";
  }
  ~WritableFolderTest() override { fs::remove_all(closed); }
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root makes such mounts";
    for (const fs::path& path : {folder, folder / "file"}) ASSERT_EQ(::chown(path.c_str(), kOwner, kOwner), 0);
    if (const Status can = try_mapped_mount(folder); !can) GTEST_SKIP() << can.error().message;
  }
  std::string refusal() const {
    const Status checked = check_writable_folder(folder);
    return checked ? "taken" : checked.error().message;
  }
  fs::path closed;  // mode 0700
  fs::path folder;
};

TEST_F(WritableFolderTest, TheOwnersFilesAreTheInstancesThroughTheMount) {
  const UniqueFd tree(static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, folder.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)));
  ASSERT_TRUE(tree);
  ASSERT_TRUE(map_owner(tree.get(), folder, {.uid = kInstance, .gid = kInstance + 1}));
  struct stat info {};
  ASSERT_EQ(::fstatat(tree.get(), "file", &info, 0), 0);
  EXPECT_EQ(info.st_uid, kInstance);
  EXPECT_EQ(info.st_gid, kInstance + 1);
  ASSERT_EQ(::stat((folder / "file").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kOwner) << "on the disk nothing has changed";
}

TEST_F(WritableFolderTest, OneThatHasAnOwnerAndIsClosedAboveIsTaken) {
  EXPECT_EQ(refusal(), "taken");
}

TEST_F(WritableFolderTest, RootsIsNot) {
  ASSERT_EQ(::chown(folder.c_str(), 0, kOwner), 0);
  EXPECT_THAT(refusal(), HasSubstr("root's or of its group"));
  ASSERT_EQ(::chown(folder.c_str(), kOwner, 0), 0);
  EXPECT_THAT(refusal(), HasSubstr("root's or of its group"));
  const UniqueFd tree(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_FALSE(map_owner(tree.get(), folder, {.uid = kInstance, .gid = kInstance})) << "nor one that became root's";
}

TEST_F(WritableFolderTest, OneThatEverybodyReachesIsNot) {
  ASSERT_EQ(::chmod(closed.c_str(), 0711), 0);
  EXPECT_THAT(refusal(), HasSubstr("chmod o-x " + closed.string()));
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  EXPECT_THAT(refusal(), HasSubstr("chmod o-x")) << "its own mode is the function's to change";
}

}  // namespace
}  // namespace fairlead
