#include <gmock/gmock.h>
#include <minizip/zip.h>
#include <sys/stat.h>

#include <filesystem>

#include "store/bundle_digest.h"
#include "store/file_tree.h"
#include "store/store.h"
#include "store/test_folder.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using store::TestFolder;
using testing::HasSubstr;

struct ZipEntry {
  std::string name;
  std::string content = "x";
  mode_t mode = S_IFREG | 0644;  // 0: as made by a system without Unix modes
};

std::string make_zip(const std::vector<ZipEntry>& entries) {
  TestFolder folder;
  zipFile zip = zipOpen64((folder / "a.zip").c_str(), APPEND_STATUS_CREATE);
  for (const ZipEntry& entry : entries) {
    zip_fileinfo info = {};
    info.external_fa = static_cast<uLong>(entry.mode) << 16;
    uLong made_by = entry.mode == 0 ? 0 : 3 << 8;
    FL_CHECK(zipOpenNewFileInZip4_64(zip, entry.name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, Z_DEFLATED, 6, 0,
                                     -MAX_WBITS, 8, 0, nullptr, 0, made_by, 0, 0) == ZIP_OK);
    zipWriteInFileInZip(zip, entry.content.data(), static_cast<unsigned>(entry.content.size()));
    zipCloseFileInZip(zip);
  }
  zipClose(zip, nullptr);
  return folder.read("a.zip");
}

const ZipEntry kBootstrap{"bootstrap", "#!/bin/sh\n", S_IFREG | 0755};

bool is_executable(const std::string& path) {
  return (fs::status(path).permissions() & fs::perms::owner_exec) != fs::perms::none;
}

std::size_t entries_in(const std::string& folder) {
  return fs::exists(folder) ? static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {})) : 0;
}

struct BundleTest : testing::Test {
  // What a refused archive leaves behind: nothing.
  void expect_refused(const std::vector<ZipEntry>& entries, Errc code, const std::string& message) {
    Result<CodeBundle> bundle = store_zip(state.path(), make_zip(entries));
    ASSERT_FALSE(bundle) << message;
    EXPECT_EQ(bundle.error().code, code) << bundle.error().message;
    EXPECT_THAT(bundle.error().message, HasSubstr(message));
    EXPECT_EQ(entries_in(state / "code"), 0u);
  }
  TestFolder state;
};

TEST_F(BundleTest, ZipIsUnpackedWithItsExecutableBits) {
  Result<CodeBundle> bundle = store_zip(state.path(), make_zip({kBootstrap,
                                                                {"lib/", "", S_IFDIR | 0700},
                                                                {"lib/run", "abc", S_IFREG | 04711},
                                                                {"lib/data", "12345"},
                                                                {"lib/link", "../bootstrap", S_IFLNK | 0777}}));
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->bytes, 10 + 3 + 5);
  EXPECT_EQ(bundle->sha256.size(), 44u);
  struct stat status;
  ASSERT_EQ(stat((bundle->path + "/lib/run").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0755u);  // no set-uid
  EXPECT_FALSE(is_executable(bundle->path + "/lib/data"));
  EXPECT_EQ(fs::read_symlink(bundle->path + "/lib/link"), "../bootstrap");
  ASSERT_EQ(stat(bundle->path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0755u);
}

TEST_F(BundleTest, BootstrapWithoutModesBecomesExecutable) {
  Result<CodeBundle> bundle = store_zip(state.path(), make_zip({{"bootstrap", "x", 0}}));
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_TRUE(is_executable(bundle->path + "/bootstrap"));
}

TEST_F(BundleTest, SameContentIsOneBundleHoweverItCame) {
  TestFolder source;
  source.write("bootstrap", "#!/bin/sh\n");
  source.write("lib/data", "12345");
  fs::create_symlink("data", source / "lib/link");
  const std::vector<ZipEntry> entries{{"lib/link", "data", S_IFLNK | 0777}, {"lib/data", "12345"}, kBootstrap};

  CodeBundle folder = store_folder(state.path(), source.path() + "/").value();
  CodeBundle zip = store_zip(state.path(), make_zip(entries)).value();
  EXPECT_EQ(folder.path, zip.path);
  EXPECT_EQ(folder.sha256, zip.sha256);
  EXPECT_EQ(entries_in(state / "code"), 1u);

  source.write("lib/data", "12346");
  EXPECT_NE(store_folder(state.path(), source.path())->path, folder.path);
}

TEST_F(BundleTest, NamesThatLeaveTheFolderAreRefused) {
  expect_refused({kBootstrap, {"../evil"}}, Errc::kInvalidArgument, "'../evil'");
  expect_refused({kBootstrap, {"a/../../evil"}}, Errc::kInvalidArgument, "'a/../../evil'");
  expect_refused({kBootstrap, {"/etc/evil"}}, Errc::kInvalidArgument, "absolute path");
  expect_refused({kBootstrap, {"..\\evil"}}, Errc::kInvalidArgument, "backslash");
  expect_refused({kBootstrap, {"./x"}}, Errc::kInvalidArgument, "'./x'");
  expect_refused({kBootstrap, {"a//b"}}, Errc::kInvalidArgument, "'a//b'");
  expect_refused({kBootstrap, {"a\nb"}}, Errc::kInvalidArgument, "'a\\x0ab'");
  expect_refused({kBootstrap, {"../", "", S_IFDIR | 0755}}, Errc::kInvalidArgument, "'..'");
  EXPECT_FALSE(fs::exists(state / "evil"));
}

TEST_F(BundleTest, LinksThatLeaveTheFolderAreRefused) {
  const mode_t link = S_IFLNK | 0777;
  expect_refused({kBootstrap, {"l", "/etc/passwd", link}}, Errc::kInvalidArgument, "absolute target");
  expect_refused({kBootstrap, {"l", "..", link}}, Errc::kInvalidArgument, "points outside");
  expect_refused({kBootstrap, {"a/b/l", "../../../x", link}}, Errc::kInvalidArgument, "points outside");
  // Harmless as text, but a/up is the root, and its parent is not ours.
  expect_refused({kBootstrap, {"a/up", "..", link}, {"l", "a/up/..", link}}, Errc::kInvalidArgument, "only leading");
}

TEST_F(BundleTest, NothingIsWrittenThroughALink) {
  TestFolder outside;
  const mode_t link = S_IFLNK | 0777;
  expect_refused({kBootstrap, {"d", "e", link}, {"d/evil"}}, Errc::kInvalidArgument, "twice");
  expect_refused({kBootstrap, {"d/evil"}, {"d", "e", link}}, Errc::kInvalidArgument, "twice");
  expect_refused({kBootstrap, {"f", "x"}, {"f/evil"}}, Errc::kInvalidArgument, "below an entry that is a file");
}

TEST_F(BundleTest, DuplicateNamesAreRefused) {
  expect_refused({kBootstrap, {"a", "1"}, {"a", "2"}}, Errc::kInvalidArgument, "'a' is in the code bundle twice");
}

TEST_F(BundleTest, MissingBootstrapIsExplained) {
  expect_refused({{"main.py"}}, Errc::kInvalidArgument, "no file 'bootstrap'");
  expect_refused({{"app/bootstrap"}}, Errc::kInvalidArgument, "found app/bootstrap: pack the contents of app");
  expect_refused({{"real"}, {"bootstrap", "real", S_IFLNK | 0777}}, Errc::kInvalidArgument, "regular file");
}

TEST_F(BundleTest, DevicesAreRefused) {
  expect_refused({kBootstrap, {"dev", "", S_IFCHR | 0666}}, Errc::kInvalidArgument, "'dev'");
}

TEST_F(BundleTest, BombIsStoppedWhileInflating) {
  // 26 entries of 10 MiB of zeros: 260 MiB from about 260 kB.
  std::vector<ZipEntry> bomb{kBootstrap};
  for (int i = 0; i < 26; ++i) bomb.push_back({"zeros" + std::to_string(i), std::string(10 << 20, '\0')});
  expect_refused(bomb, Errc::kTooLarge, "262144000 bytes");
}

TEST_F(BundleTest, TooManyEntriesAreRefused) {
  std::vector<ZipEntry> entries{kBootstrap};
  for (std::size_t i = 0; i < store::kMaxBundleEntries; ++i) entries.push_back({std::to_string(i), ""});
  expect_refused(entries, Errc::kTooLarge, "20000 entries");
}

TEST_F(BundleTest, DamagedArchivesAreRefused) {
  EXPECT_EQ(store_zip(state.path(), "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(store_zip(state.path(), "PK no zip").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(store_zip(state.path(), std::string(kMaxZippedCodeBytes + 1, 'x')).error().code, Errc::kTooLarge);

  const std::string good = make_zip({kBootstrap, {"data", std::string(5000, 'd')}});
  for (std::size_t size = 0; size < good.size(); ++size) {  // cut anywhere: an error, never a bundle
    EXPECT_FALSE(store_zip(state.path(), good.substr(0, size))) << size << " of " << good.size();
  }
  std::string flipped = good;
  flipped[good.find("data") + 8] ^= 0x40;  // inside the deflated content
  EXPECT_THAT(store_zip(state.path(), flipped).error().message, HasSubstr("damaged at entry 'data'"));
  EXPECT_EQ(entries_in(state / "code"), 0u);
}

TEST_F(BundleTest, FolderWithASpecialFileIsRefusedByName) {
  TestFolder source;
  source.write("bootstrap", "x");
  ASSERT_EQ(mkfifo((source / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(store_folder(state.path(), source.path()).error().message, HasSubstr("pipe is neither file"));
  EXPECT_EQ(store_folder(state.path(), source / "absent").error().code, Errc::kNotFound);
}

TEST_F(BundleTest, UnusedBundlesAndOldStagingFoldersAreRemoved) {
  CodeBundle used = store_zip(state.path(), make_zip({kBootstrap})).value();
  CodeBundle unused = store_zip(state.path(), make_zip({kBootstrap, {"more"}})).value();
  fs::create_directories(state / "code/staging-1-abcdef/x");
  const std::string under_way = state / fmt::format("code/staging-{}-abcdef", getpid());
  fs::create_directories(under_way);
  remove_unused_bundles(state.path(), {used.path});
  EXPECT_TRUE(fs::exists(used.path + "/bootstrap"));
  EXPECT_FALSE(fs::exists(unused.path));
  EXPECT_FALSE(fs::exists(state / "code/staging-1-abcdef"));
  EXPECT_TRUE(fs::exists(under_way));
}

}  // namespace
}  // namespace fairlead
