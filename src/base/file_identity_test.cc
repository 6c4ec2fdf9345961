#include "base/file_identity.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FileIdentityTest : public testing::Test {
 protected:
  FileIdentityTest() {
    std::string name = (fs::temp_directory_path() / "identity-XXXXXX").string();
    root = fs::canonical(::mkdtemp(name.data()));
    fs::create_directories(root / "above/code");
  }
  ~FileIdentityTest() override { fs::remove_all(root); }
  std::string code() const { return root / "above/code"; }
  FileIdentity identity() const {
    const UniqueFd folder(::open(code().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return identity_of(folder.get()).value();
  }
  std::string refusal(const FileIdentity& known) const {
    const Result<UniqueFd> folder = open_same_folder(code(), known);
    return folder ? "opened" : folder.error().message;
  }
  fs::path root;
};

TEST_F(FileIdentityTest, TheSameFolderOpens) {
  EXPECT_EQ(refusal(identity()), "opened");
}

TEST_F(FileIdentityTest, AnotherOneInItsPlaceDoesNot) {
  const FileIdentity known = identity();
  fs::rename(root / "above/code", root / "away");
  EXPECT_THAT(refusal(known), HasSubstr(code() + " is not there any more"));
  fs::create_directory(root / "above/code");
  EXPECT_THAT(refusal(known), HasSubstr(code() + " is another one than was deployed"));
  fs::remove(root / "above/code");
  std::ofstream(root / "above/code") << "a file";
  EXPECT_THAT(refusal(known), HasSubstr("not there any more"));
}

// The number of a deleted inode is given to the next one.
TEST_F(FileIdentityTest, AnInodeNumberAloneIsNoIdentity) {
  FileIdentity known = identity();
  if (known.born_ns == 0) GTEST_SKIP() << "this file system does not say when a folder was made";
  --known.born_ns;
  EXPECT_THAT(refusal(known), HasSubstr("another one"));
}

TEST_F(FileIdentityTest, NoLinkLeadsToIt) {
  const FileIdentity known = identity();
  fs::rename(root / "above", root / "moved");
  fs::create_directory_symlink(root / "moved", root / "above");
  EXPECT_THAT(refusal(known), HasSubstr("there is a link in its place or on the way"));
  fs::remove(root / "above");
  fs::create_directory(root / "above");
  fs::create_directory_symlink(root / "moved/code", root / "above/code");
  EXPECT_THAT(refusal(known), HasSubstr("there is a link"));
}

TEST(FileIdentity, ReadsWhatItWrites) {
  const FileIdentity identity{.device = 64768, .inode = ~0ull, .born_ns = 1'700'000'000'000'000'001};
  EXPECT_EQ(parse_file_identity(to_text(identity)).value(), identity);
  for (const char* text : {"", "1", "1:2", "1:2:", "1:2:3:", "1:2:3 ", "-1:2:3", ":2:3", "a:b:c", "1::3"}) {
    EXPECT_FALSE(parse_file_identity(text)) << text;
  }
}

}  // namespace
}  // namespace fairlead
