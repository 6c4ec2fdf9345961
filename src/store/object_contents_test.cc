#include "store/object_contents.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "store/test_folder.h"

namespace fairlead::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct ObjectContentsTest : testing::Test {
  ObjectContentsTest() { reopen({.memory = Bytes(100), .spill = Bytes(100), .tenant = Bytes(1000)}); }

  // As a new node would: after the death of the old one.
  void reopen(ObjectLedger::Limits limits) {
    contents.reset();
    io.restart();
    auto files = ObjectFiles::open(folder / "memory", folder / "spill").value();
    contents = std::make_unique<ObjectContents>(io, std::move(files), limits);
  }

  // Until nothing is left to do, on the worker's thread either.
  void settle() {
    io.restart();
    io.run();
  }
  Status ask(ObjectContents::Id& id, std::int64_t bytes, const std::string& tenant = "acme") {
    std::optional<Status> granted;
    id = contents->ask(tenant, Bytes(bytes), ObjectContents::Writer::kStore,
                       [&](Status status) { granted = std::move(status); });
    settle();
    FL_CHECK(granted.has_value(), "no answer");
    return *granted;
  }
  ContentId keep(const std::string& bytes) {
    ObjectContents::Id id = 0;
    FL_CHECK(ask(id, std::ssize(bytes)).has_value());
    Result<std::string> digest = fail(Errc::kInternal, "not finished");
    contents->write(id, bytes, [&](Result<std::string> result) { digest = std::move(result); });
    settle();
    ContentId content{"acme", digest.value()};
    FL_CHECK(contents->keep(id, content, Bytes(std::ssize(bytes))).has_value());
    settle();
    return content;
  }
  Result<std::string> read(const ContentId& content) {
    Result<UniqueFd> opened = fail(Errc::kInternal, "not opened");
    contents->open(content, [&](Result<UniqueFd> fd) { opened = std::move(fd); });
    settle();
    if (!opened) return fail(opened.error());
    struct stat info {};
    FL_CHECK(::fstat(opened->get(), &info) == 0);
    std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
    FL_CHECK(::pread(opened->get(), bytes.data(), bytes.size(), 0) == info.st_size);
    return bytes;
  }
  std::size_t files_below(const std::string& name) const {
    std::size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder / name)) {
      count += entry.is_regular_file() && entry.path().filename() != ".lock";  // of the node that has the folder
    }
    return count;
  }

  TestFolder folder;
  boost::asio::io_context io;
  std::unique_ptr<ObjectContents> contents;
};

const std::string kA(60, 'a'), kB(60, 'b'), kC(30, 'c');

TEST_F(ObjectContentsTest, WhatIsKeptIsReadUntilItsLastReferenceGoes) {
  const ContentId a = keep(kA);
  EXPECT_EQ(read(a), kA);
  contents->release(a);
  settle();
  EXPECT_EQ(contents->ledger().memory_used(), Bytes(0));
  EXPECT_EQ(contents->ledger().tenant_used("acme"), Bytes(0));
  EXPECT_EQ(files_below("memory/content"), 0u);
}

TEST_F(ObjectContentsTest, EqualBytesAreThereOnceAndCountOnce) {
  const ContentId first = keep(kC), second = keep(kC);
  EXPECT_EQ(first, second);
  EXPECT_EQ(contents->ledger().memory_used(), Bytes(30));
  EXPECT_EQ(contents->ledger().tenant_used("acme"), Bytes(30));
  EXPECT_EQ(files_below("memory/pending"), 0u);
  contents->release(first);
  settle();
  EXPECT_EQ(read(second), kC) << "one reference is left";
}

TEST_F(ObjectContentsTest, TheLeastRecentlyUsedGoesToDiskAndComesBack) {
  const ContentId a = keep(kA), c = keep(kC);
  EXPECT_EQ(read(a), kA);  // now c is the older one
  const ContentId other = keep(std::string(20, 'd'));
  EXPECT_TRUE(contents->in_memory(a));
  EXPECT_FALSE(contents->in_memory(c));
  EXPECT_EQ(contents->spills(), 1u);
  contents->release(other);
  settle();
  EXPECT_EQ(read(c), kC);
  EXPECT_TRUE(contents->in_memory(c));
  EXPECT_EQ(contents->reads_back(), 1u);
  EXPECT_EQ(files_below("spill"), 0u);
}

TEST_F(ObjectContentsTest, WhatIsReleasedOnItsWayToDiskGoesWhenItHasArrived) {
  const ContentId a = keep(kA);
  std::optional<Status> granted;
  contents->ask("acme", Bytes(60), ObjectContents::Writer::kStore, [&](Status status) { granted = std::move(status); });
  contents->release(a);  // the ledger has just sent it away
  settle();
  ASSERT_TRUE(granted.has_value());
  EXPECT_TRUE(*granted);
  EXPECT_EQ(files_below("memory/content"), 0u);
  EXPECT_EQ(files_below("spill"), 0u);
  EXPECT_EQ(contents->ledger().disk_used(), Bytes(0));
  EXPECT_EQ(contents->ledger().memory_used(), Bytes(60));
}

TEST_F(ObjectContentsTest, SeveralReadersOfOneOnDiskFetchItOnce) {
  const ContentId a = keep(kA), b = keep(kB);
  contents->release(b);
  settle();
  ASSERT_FALSE(contents->in_memory(a));
  int opened = 0;
  for (int i = 0; i < 3; ++i) contents->open(a, [&](const Result<UniqueFd>& fd) { opened += fd.has_value(); });
  settle();
  EXPECT_EQ(opened, 3);
  EXPECT_EQ(contents->reads_back(), 1u);
}

TEST_F(ObjectContentsTest, WithoutRoomToComeBackItIsReadOnDisk) {
  reopen({.memory = Bytes(60), .spill = Bytes(60), .tenant = Bytes(1000)});
  const ContentId a = keep(kA);
  const ContentId b = keep(kB);
  EXPECT_EQ(read(a), kA);
  EXPECT_FALSE(contents->in_memory(a));
  EXPECT_TRUE(contents->in_memory(b));
  EXPECT_EQ(contents->reads_back(), 0u);
}

TEST_F(ObjectContentsTest, DamageOnDiskReachesTheReaderAndTheMemoryIsGivenBack) {
  const ContentId a = keep(kA), b = keep(kB);
  contents->release(b);
  settle();
  const std::string path = contents->files().spilled_path(a);
  fs::permissions(path, fs::perms::owner_all);
  folder.write("spill/acme/" + fs::path(path).filename().string(), std::string(60, 'x'));
  const auto bytes = read(a);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Errc::kCorrupt);
  EXPECT_EQ(contents->ledger().memory_used(), Bytes(0));
  EXPECT_EQ(files_below("memory/pending"), 0u);
}

TEST_F(ObjectContentsTest, ASpillThatFailsIsToldWhoWaitsAndLosesNothing) {
  const ContentId a = keep(kA);
  folder.write("spill/acme", "a file where the tenant's folder would be");
  ObjectContents::Id id = 0;
  const Status granted = ask(id, 60);
  ASSERT_FALSE(granted);
  EXPECT_EQ(granted.error().code, Errc::kResourceExhausted);
  EXPECT_THAT(granted.error().message, HasSubstr("could not be spilled"));
  EXPECT_EQ(read(a), kA);
  EXPECT_EQ(contents->ledger().tenant_used("acme"), Bytes(60)) << "what was refused counts no more";
}

TEST_F(ObjectContentsTest, WhatIsCancelledAnswersAndGivesItsPlaceBack) {
  std::optional<Status> granted;
  const auto id = contents->ask("acme", Bytes(50), ObjectContents::Writer::kStore,
                                [&](Status status) { granted = std::move(status); });
  settle();
  ASSERT_TRUE(granted && *granted);
  Result<UniqueFd> fd = fail(Errc::kInternal, "");
  contents->reserve(id, Bytes(50), [&](Result<UniqueFd> opened) { fd = std::move(opened); });
  settle();
  ASSERT_TRUE(fd);
  contents->cancel(id);
  contents->cancel(id);  // forgotten: nothing
  settle();
  EXPECT_EQ(contents->ledger().memory_used(), Bytes(0));
  EXPECT_EQ(files_below("memory/pending"), 0u);
}

TEST_F(ObjectContentsTest, OneThatWaitsAndIsCancelledHearsSo) {
  ObjectContents::Id held = 0;
  ASSERT_TRUE(ask(held, 100));
  std::optional<Status> granted;
  const auto waiting = contents->ask("acme", Bytes(50), ObjectContents::Writer::kStore,
                                     [&](Status status) { granted = std::move(status); });
  contents->cancel(waiting);
  settle();
  ASSERT_TRUE(granted.has_value());
  ASSERT_FALSE(*granted);
  EXPECT_EQ(granted->error().code, Errc::kNotFound);
}

TEST_F(ObjectContentsTest, AClaimIsRoomInTheQuotaUntilItGoes) {
  reopen({.memory = Bytes(100), .spill = Bytes(100), .tenant = Bytes(100)});
  ObjectContents::Id id = 0;
  {
    const auto claim = contents->claim("acme", Bytes(70));
    ASSERT_TRUE(claim);
    EXPECT_EQ(ask(id, 40).error().code, Errc::kResourceExhausted);
  }
  EXPECT_TRUE(ask(id, 40));
  QuotaClaim survivor = contents->claim("acme", Bytes(10)).value();
  contents.reset();  // the claim goes later, and touches nothing
}

TEST_F(ObjectContentsTest, WhatIsFoundAtStartIsKeptAndTheRestRemoved) {
  const ContentId a = keep(kA), b = keep(kB), c = keep(kC);  // a is on disk now
  ASSERT_FALSE(contents->in_memory(a));
  reopen({.memory = Bytes(100), .spill = Bytes(100), .tenant = Bytes(1000)});
  ASSERT_TRUE(contents->adopt(a, Bytes(60)));
  ASSERT_TRUE(contents->adopt(c, Bytes(30)));
  ASSERT_TRUE(contents->adopt(c, Bytes(30)));  // two objects with these bytes
  contents->remove_unknown();
  EXPECT_FALSE(contents->in_memory(a));
  EXPECT_EQ(contents->ledger().memory_used(), Bytes(30));
  EXPECT_EQ(contents->ledger().disk_used(), Bytes(60));
  EXPECT_EQ(ObjectFiles::size_of(contents->files().content_path(b)), std::nullopt);
  contents->release(c);
  EXPECT_EQ(read(c), kC);
  EXPECT_EQ(read(a), kA);
}

TEST_F(ObjectContentsTest, WhatIsNotThereInFullIsNotAdopted) {
  const ContentId a = keep(kA);
  reopen({.memory = Bytes(100), .spill = Bytes(100), .tenant = Bytes(1000)});
  const Status short_one = contents->adopt(a, Bytes(61));
  ASSERT_FALSE(short_one);
  EXPECT_EQ(short_one.error().code, Errc::kCorrupt);
  EXPECT_THAT(short_one.error().message, HasSubstr("has 60 bytes"));
  EXPECT_THAT(contents->adopt({"acme", digest_of("none")}, Bytes(1)).error().message, HasSubstr("is missing"));
  EXPECT_EQ(contents->ledger().memory_used(), Bytes(0));
}

TEST_F(ObjectContentsTest, ASmallerMemorySpillsWhatItFindsAndASweepLeavesThatAlone) {
  const ContentId a = keep(kA), c = keep(kC);
  reopen({.memory = Bytes(40), .spill = Bytes(100), .tenant = Bytes(1000)});
  ASSERT_TRUE(contents->adopt(a, Bytes(60)));
  ASSERT_TRUE(contents->adopt(c, Bytes(30)));
  contents->remove_unknown();  // a is on its way
  settle();
  EXPECT_FALSE(contents->in_memory(a));
  EXPECT_TRUE(contents->in_memory(c));
  EXPECT_EQ(read(a), kA);
}

}  // namespace
}  // namespace fairlead::store
