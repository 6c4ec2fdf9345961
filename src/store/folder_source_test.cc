#include "store/folder_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "store/test_folder.h"

namespace fairlead::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
constexpr std::uint32_t kSomebody = 64321;

class FolderSourceTest : public testing::Test {
 protected:
  FolderSourceTest() {
    folder.write("code/bootstrap", "program");
    folder.write("code/lib/a", "a");
    fs::permissions(folder / "", fs::perms(0755));
  }
  Result<FolderSource> open(std::optional<std::uint32_t> uid = {}) { return FolderSource::open(folder / "code", uid); }
  static void needs_root() {
    if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user cannot act as another one";
  }
  TestFolder folder;
};

TEST_F(FolderSourceTest, ListsAndOpensWhatIsThere) {
  const auto source = open();
  ASSERT_TRUE(source) << source.error().message;
  std::vector<std::string> names;
  const auto entries = source->list("");
  for (const auto& entry : *entries) names.push_back(entry.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("bootstrap", "lib"));
  EXPECT_EQ(source->list("lib")->front().name, "lib/a");
  EXPECT_TRUE(source->open_file("lib/a"));
}

TEST_F(FolderSourceTest, NoNameLeadsOutOfIt) {
  folder.write("secret", "secret");
  fs::create_symlink(folder / "secret", folder / "code/link");
  fs::create_directory_symlink(folder / "", folder / "code/up");
  const auto source = open();
  for (const char* name : {"link", "up/secret", "../secret", "up", "/etc/passwd", "lib/../../secret"}) {
    EXPECT_FALSE(source->open_file(name)) << name;
  }
  EXPECT_FALSE(source->list("up"));
  EXPECT_FALSE(source->list(".."));
  EXPECT_FALSE(FolderSource::open("/proc/self/root", {})) << "no way into a process";
  EXPECT_FALSE(FolderSource::open("/proc/self/cwd", {}));
}

TEST_F(FolderSourceTest, StaysWhereItWasOpened) {
  const auto source = open();
  fs::rename(folder / "code", folder / "moved");
  folder.write("code/bootstrap", "other");
  EXPECT_TRUE(source->open_file("lib/a")) << "the folder that was named, whatever has its name now";
}

TEST_F(FolderSourceTest, APipeInPlaceOfAFileHoldsNothingUp) {
  const auto source = open();
  ASSERT_EQ(::mkfifo((folder / "code/pipe").c_str(), 0644), 0);
  EXPECT_THAT(source->open_file("pipe").error().message, HasSubstr("no file any more"));
}

TEST_F(FolderSourceTest, AnotherUsersRightsAreHis) {
  needs_root();
  folder.write("code/private", "secret");
  fs::permissions(folder / "code/private", fs::perms(0600));
  const auto source = open(kSomebody);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_TRUE(source->open_file("bootstrap"));
  EXPECT_EQ(source->open_file("private").error().code, Errc::kForbidden);
  EXPECT_TRUE(open()->open_file("private")) << "the node's own rights are back";
  fs::permissions(folder / "code", fs::perms(0700));
  const auto closed = open(kSomebody);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Errc::kForbidden);
  EXPECT_THAT(closed.error().message, HasSubstr("may not be read by who named it"));
  EXPECT_EQ(FolderSource::open("/root", kSomebody).error().code, Errc::kForbidden);
}

TEST_F(FolderSourceTest, RootsGroupsAreNotAnothers) {
  needs_root();
  ASSERT_EQ(::chown((folder / "code/bootstrap").c_str(), 0, 0), 0);
  fs::permissions(folder / "code/bootstrap", fs::perms(0640));
  EXPECT_EQ(open(kSomebody)->open_file("bootstrap").error().code, Errc::kForbidden);
}

TEST_F(FolderSourceTest, WhatIsNoFolderIsNamed) {
  EXPECT_EQ(FolderSource::open(folder / "code/bootstrap", {}).error().code, Errc::kNotFound);
  EXPECT_EQ(FolderSource::open(folder / "absent", {}).error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace fairlead::store
