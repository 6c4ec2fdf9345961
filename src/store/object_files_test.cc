#include "store/object_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "store/test_folder.h"

namespace fairlead::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

mode_t mode_of(const std::string& path) {
  struct stat info {};
  FL_CHECK(::stat(path.c_str(), &info) == 0, "{}", path);
  return info.st_mode & 07777;
}

std::size_t entries_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

struct ObjectFilesTest : testing::Test {
  ObjectFilesTest() { reopen(); }

  void reopen() {
    files.reset();
    files.emplace(ObjectFiles::open(memory, spill).value());
  }

  // Bytes as they lie after a seal.
  ContentId publish(std::uint64_t id, const std::string& bytes) {
    const Bytes size(static_cast<std::int64_t>(bytes.size()));
    UniqueFd fd = files->reserve(id, size).value();
    FL_CHECK(files->write(id, fd, bytes).has_value());
    fd.reset();
    ContentId content{"acme", files->finish(id, size).value()};
    FL_CHECK(files->publish(id, content).has_value());
    return content;
  }
  std::string record_file() const { return fs::directory_iterator(memory + "/records")->path().string(); }

  TestFolder folder;
  const std::string memory = folder / "memory", spill = folder / "spill";
  std::optional<ObjectFiles> files;
};

TEST_F(ObjectFilesTest, WhatIsReservedHasItsSizeAndIsClosedToOthers) {
  const auto fd = files->reserve(7, Bytes(5000));
  ASSERT_TRUE(fd) << fd.error().message;
  EXPECT_EQ(ObjectFiles::size_of(files->pending_path(7)), Bytes(5000));
  EXPECT_EQ(mode_of(files->pending_path(7)), 0600u);
  EXPECT_FALSE(files->reserve(7, Bytes(1))) << "the id is taken";
  EXPECT_TRUE(files->reserve(8, Bytes(0)));
}

TEST_F(ObjectFilesTest, AReservationWithoutRoomLeavesNothing) {
  const auto fd = files->reserve(7, Bytes(std::int64_t{1} << 61));
  ASSERT_FALSE(fd);
  EXPECT_THAT(fd.error().message, HasSubstr("reserve 2305843009213693952 bytes"));
  EXPECT_EQ(entries_in(memory + "/pending"), 0u);
}

TEST_F(ObjectFilesTest, FinishingTellsTheDigestAndTakesTheRightToWrite) {
  const ContentId content = publish(1, "some bytes");
  EXPECT_EQ(content.digest, digest_of("some bytes"));
  EXPECT_EQ(mode_of(files->content_path(content)), 0444u);
  EXPECT_EQ(folder.read("memory/content/acme/" + to_hex(content.digest)), "some bytes");
  EXPECT_EQ(::fcntl(files->open_content(content)->get(), F_GETFL) & O_ACCMODE, O_RDONLY);
}

TEST_F(ObjectFilesTest, OtherThanTheAnnouncedSizeIsNotFinished) {
  const UniqueFd fd = files->reserve(1, Bytes(10)).value();
  ASSERT_EQ(::ftruncate(fd.get(), 9), 0);
  const auto digest = files->finish(1, Bytes(10));
  ASSERT_FALSE(digest);
  EXPECT_EQ(digest.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(digest.error().message, HasSubstr("has 9 bytes, the object was created with 10"));
}

TEST_F(ObjectFilesTest, WhoKeepsAMappingOrADescriptorWritesToNothing) {
  const UniqueFd fd = files->reserve(1, Bytes(4)).value();
  void* const mapped = ::mmap(nullptr, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::memcpy(mapped, "good", 4);
  const std::string digest = files->finish(1, Bytes(4)).value();
  std::memcpy(mapped, "evil", 4);
  ASSERT_EQ(::pwrite(fd.get(), "evil", 4, 0), 4);
  EXPECT_EQ(digest, digest_of("good"));
  EXPECT_EQ(folder.read("memory/pending/1"), "good");
  EXPECT_EQ(entries_in(memory + "/pending"), 1u) << "the copy has taken its place";
  ::munmap(mapped, 4);
}

TEST_F(ObjectFilesTest, WhatIsSpilledComesBack) {
  const ContentId content = publish(1, "far away");
  ASSERT_TRUE(files->spill(content));
  EXPECT_TRUE(files->check_spilled(content, Bytes(8)));
  EXPECT_EQ(mode_of(files->spilled_path(content)), 0444u);
  EXPECT_EQ(entries_in(spill + "/acme"), 1u) << "nothing partial is left";
  files->remove_file(files->content_path(content));
  ASSERT_TRUE(files->read_back(2, content, Bytes(8)));
  EXPECT_EQ(folder.read("memory/pending/2"), "far away");
  EXPECT_EQ(mode_of(files->pending_path(2)), 0444u);
}

TEST_F(ObjectFilesTest, DamageOnDiskIsFoundAndNothingOfItStaysInMemory) {
  const ContentId content = publish(1, "far away");
  ASSERT_TRUE(files->spill(content));
  fs::permissions(files->spilled_path(content), fs::perms::owner_all);
  folder.write("spill/acme/" + to_hex(content.digest), "fxr away");
  for (const Status& damaged : {files->read_back(2, content, Bytes(8)), files->check_spilled(content, Bytes(8))}) {
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().code, Errc::kCorrupt);
    EXPECT_THAT(damaged.error().message, HasSubstr("not what was sealed"));
  }
  EXPECT_EQ(entries_in(memory + "/pending"), 0u);
  EXPECT_EQ(ObjectFiles::size_of(files->spilled_path(content)), Bytes(8)) << "left as it was found";
}

TEST_F(ObjectFilesTest, AShortOrMissingFileOnDiskIsDamage) {
  const ContentId content = publish(1, "far away");
  EXPECT_THAT(files->read_back(2, content, Bytes(8)).error().message, HasSubstr("is missing: 8 bytes were spilled"));
  ASSERT_TRUE(files->spill(content));
  EXPECT_THAT(files->check_spilled(content, Bytes(9)).error().message, HasSubstr("has 8 bytes: 9 bytes"));
}

TEST_F(ObjectFilesTest, ASpillThatCannotBeWrittenSaysSo) {
  const ContentId content = publish(1, "far away");
  folder.write("spill/acme", "a file where the tenant's folder would be");
  EXPECT_FALSE(files->spill(content));
  EXPECT_EQ(ObjectFiles::size_of(files->content_path(content)), Bytes(8)) << "the one in memory stays";
}

TEST_F(ObjectFilesTest, LinksAreNotFollowed) {
  const ContentId content = publish(1, "mine");
  folder.write("other", "others");
  fs::remove(files->content_path(content));
  fs::create_symlink(folder / "other", files->content_path(content));
  EXPECT_FALSE(files->open_content(content));
  EXPECT_EQ(ObjectFiles::size_of(files->content_path(content)), std::nullopt);
}

TEST_F(ObjectFilesTest, RecordsSurviveWithEveryField) {
  const ObjectRecord record{{"acme", "a/b"}, digest_of("x"), Bytes(1), 1000, 2000};
  ASSERT_TRUE(files->put_record(record));
  ASSERT_TRUE(files->put_record({{"acme", "for ever"}, digest_of("y"), Bytes(0), 3, std::nullopt}));
  ASSERT_TRUE(files->put_record({{"gone", "a/b"}, digest_of("x"), Bytes(1), 1000, 2000}));
  files->remove_record({"gone", "a/b"});
  reopen();
  auto found = files->load_records().value();
  ASSERT_THAT(found, SizeIs(2));
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name.key < b.name.key; });
  EXPECT_EQ(found[0].name, record.name);
  EXPECT_EQ(found[0].content, record.content);
  EXPECT_EQ(found[0].bytes, Bytes(1));
  EXPECT_EQ(found[0].created_ms, 1000);
  EXPECT_EQ(found[0].expires_ms, 2000);
  EXPECT_EQ(found[1].expires_ms, std::nullopt);
}

TEST_F(ObjectFilesTest, RecordsAreClosedToOthers) {
  ASSERT_TRUE(files->put_record({{"acme", "a"}, digest_of("x"), Bytes(1), 1, {}}));
  EXPECT_EQ(mode_of(record_file()), 0600u);
  EXPECT_EQ(mode_of(memory), 0700u);
  EXPECT_EQ(mode_of(spill), 0700u);
}

TEST_F(ObjectFilesTest, DamagedRecordsAreLeftOut) {
  const std::string hex = to_hex(digest_of("x"));
  const auto with = [&](const std::string& text) {
    fs::remove_all(memory + "/records");
    reopen();
    FL_CHECK(files->put_record({{"acme", "a"}, digest_of("x"), Bytes(1), 1, {}}).has_value());
    folder.write("memory/records/" + fs::path(record_file()).filename().string(), text);
    return files->load_records().value();
  };
  const std::string good = R"({"tenant":"acme","key":"a","content":")" + hex + R"(","bytes":1,"created_ms":1})";
  EXPECT_THAT(with(good), SizeIs(1)) << "what the others differ from by one thing";
  EXPECT_THAT(with(good.substr(0, good.size() / 2)), IsEmpty());
  EXPECT_THAT(with(R"({"tenant":"acme","key":"a","content":"12","bytes":1,"created_ms":1})"), IsEmpty());
  EXPECT_THAT(with(R"({"tenant":"acme","key":"a","content":")" + hex + R"(","bytes":-1,"created_ms":1})"), IsEmpty());
  EXPECT_THAT(with(R"({"tenant":"acme","key":"b","content":")" + hex + R"(","bytes":1,"created_ms":1})"), IsEmpty())
      << "another object's record under this one's name";
}

TEST_F(ObjectFilesTest, WhatWasPendingIsGoneAtTheNextStart) {
  const ContentId content = publish(1, "sealed");
  ASSERT_TRUE(files->reserve(2, Bytes(10)));
  reopen();
  EXPECT_EQ(entries_in(memory + "/pending"), 0u);
  EXPECT_EQ(ObjectFiles::size_of(files->content_path(content)), Bytes(6));
}

TEST_F(ObjectFilesTest, ASecondNodeIsRefused) {
  const auto second = ObjectFiles::open(memory, spill);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kConflict);
}

// Each would remove what the other has spilled, since it knows nothing of it.
TEST_F(ObjectFilesTest, ASecondNodeInTheSameSpillFolderIsRefusedAndRemovesNothing) {
  const ContentId content = publish(1, "bytes");
  ASSERT_TRUE(files->spill(content));
  const auto second = ObjectFiles::open(folder / "other-memory", spill);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kConflict);
  EXPECT_EQ(
      second.error().message,
      fmt::format("--object-spill-dir is {}, which is in use by the process with pid {}: give each node a folder of "
                  "its own",
                  spill, getpid()));
  EXPECT_TRUE(files->check_spilled(content, Bytes(5)));
  files.reset();
  EXPECT_TRUE(ObjectFiles::open(folder / "other-memory", spill)) << "the first has ended";
}

TEST_F(ObjectFilesTest, OneFolderMayBeBothAndATenantMayBeNamedAsTheLock) {
  const auto both = ObjectFiles::open(folder / "both", folder / "both");
  EXPECT_TRUE(both) << both.error().message;
  ContentId content = publish(1, "bytes");
  ASSERT_TRUE(files->make_content_dir("lock"));
  fs::copy_file(files->content_path(content), files->content_path({"lock", content.digest}));
  content.tenant = "lock";
  EXPECT_TRUE(files->spill(content));
  reopen();
  EXPECT_TRUE(files->check_spilled(content, Bytes(5)));
}

TEST_F(ObjectFilesTest, OnlyContentsThatNobodyKnowsAreRemoved) {
  const ContentId used = publish(1, "used"), unknown = publish(2, "unknown");
  ASSERT_TRUE(files->spill(unknown));
  folder.write("spill/acme/" + to_hex(digest_of("half")) + ".partial", "ha");
  folder.write("spill/acme/notes.txt", "somebody's");
  files->remove_all_but({files->content_path(used)});
  EXPECT_EQ(ObjectFiles::size_of(files->content_path(used)), Bytes(4));
  EXPECT_EQ(ObjectFiles::size_of(files->content_path(unknown)), std::nullopt);
  EXPECT_EQ(entries_in(spill + "/acme"), 1u);
  EXPECT_EQ(folder.read("spill/acme/notes.txt"), "somebody's");
}

TEST_F(ObjectFilesTest, WhatIsPutAsideHasLostItsName) {
  const ContentId content = publish(1, "old");
  const std::string aside = files->put_aside(files->content_path(content), 9);
  EXPECT_FALSE(files->open_content(content));
  EXPECT_EQ(ObjectFiles::size_of(aside), Bytes(3));
  EXPECT_EQ(files->put_aside(memory + "/content/none", 10), memory + "/content/none");
}

TEST_F(ObjectFilesTest, TheFolderInMemoryGoesUnlessSomethingElseIsInIt) {
  folder.write("memory/notes.txt", "somebody's");
  publish(1, "bytes");
  files->remove_memory_dir();
  EXPECT_EQ(entries_in(memory), 1u);
  fs::remove(memory + "/notes.txt");
  files->remove_memory_dir();
  EXPECT_FALSE(fs::exists(memory));
}

}  // namespace
}  // namespace fairlead::store
