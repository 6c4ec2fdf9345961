#include "store/object_store.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <filesystem>

#include "store/test_folder.h"

namespace fairlead {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::TestFolder;
using testing::ElementsAre;
using testing::HasSubstr;

std::string contents_of(const UniqueFd& fd) {
  struct stat info {};
  FL_CHECK(::fstat(fd.get(), &info) == 0);
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  FL_CHECK(::pread(fd.get(), bytes.data(), bytes.size(), 0) == info.st_size);
  return bytes;
}

std::string filled(std::size_t bytes, char with) {
  return std::string(bytes, with);
}

constexpr std::size_t kOwnFiles = 2;  // of the store, in its memory: lock, boot

struct ObjectStoreTest : testing::Test {
  ObjectStoreTest() { reopen(); }
  ~ObjectStoreTest() override { store.reset(); }

  // As a new node would: after the death of the old one.
  void reopen() {
    store.reset();
    io.restart();
    ObjectStoreOptions options = settings;
    options.memory_dir = folder / "memory";
    options.spill_dir = folder / "spill";
    options.now_ms = [this] { return now_ms; };
    store = ObjectStore::open(io, options).value();
  }

  template <typename T>
  ObjectStore::Callback<T> into(std::optional<Result<T>>& result) {
    return [&result](Result<T> value) { result.emplace(std::move(value)); };
  }
  template <typename T>
  Result<T> wait_for(std::optional<Result<T>>& result) {
    while (!result) {
      if (io.stopped()) io.restart();
      FL_CHECK(io.run_one_for(std::chrono::minutes(2)) > 0);
    }
    return std::move(*result);
  }

  Result<ObjectInfo> put(const std::string& key, std::string bytes, std::optional<Duration> lifetime = {}) {
    std::optional<Result<ObjectInfo>> result;
    store->put({tenant, key}, std::move(bytes), lifetime, into(result));
    return wait_for(result);
  }
  Result<UniqueFd> create(const std::string& key, Bytes bytes) {
    std::optional<Result<UniqueFd>> result;
    store->create({tenant, key}, bytes, {}, into(result));
    return wait_for(result);
  }
  Result<ObjectInfo> seal(const std::string& key) {
    std::optional<Result<ObjectInfo>> result;
    store->seal({tenant, key}, into(result));
    return wait_for(result);
  }
  Result<OpenObject> open(const std::string& key, Duration patience = Duration(0)) {
    std::optional<Result<OpenObject>> result;
    store->open_object({tenant, key}, patience, into(result));
    return wait_for(result);
  }
  std::string read(const std::string& key) {
    const auto opened = open(key);
    return opened ? contents_of(opened->memory) : "error: " + opened.error().message;
  }
  std::vector<std::string> keys(const std::string& prefix = "", const std::string& after = "",
                                std::size_t limit = 100) {
    std::vector<std::string> found;
    for (const ObjectInfo& info : store->list(tenant, prefix, after, limit)) found.push_back(info.name.key);
    return found;
  }
  std::size_t files_below(const std::string& name) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / name)) {
      count += entry.is_regular_file() && entry.path().filename() != ".lock" ? 1 : 0;  // of the node that has it
    }
    return count;
  }

  TestFolder folder;
  ObjectStoreOptions settings{.memory_limit = kib(100), .spill_limit = kib(200), .tenant_quota = mib(1)};
  std::string tenant = "acme";
  std::int64_t now_ms = 1'000'000;
  boost::asio::io_context io;
  std::unique_ptr<ObjectStore> store;
};

TEST_F(ObjectStoreTest, WhatWasPutIsReadBack) {
  const auto info = put("models/bert", "weights");
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(ObjectState::kSealed, info->state);
  EXPECT_EQ(Bytes(7), info->bytes);
  EXPECT_EQ(32u, info->content.size());
  EXPECT_EQ("weights", read("models/bert"));
  EXPECT_EQ("", [&] {
    FL_CHECK(put("empty", "").has_value());
    return read("empty");
  }());
}

TEST_F(ObjectStoreTest, AnObjectDoesNotChange) {
  ASSERT_TRUE(put("a", "first"));
  const auto again = put("a", "second");
  ASSERT_FALSE(again);
  EXPECT_EQ(Errc::kAlreadyExists, again.error().code);
  EXPECT_EQ("first", read("a"));
}

TEST_F(ObjectStoreTest, KeysAndTenantsThatNameFilesAreRefused) {
  for (const char* key : {"", "../x", "a//b", "/a", "a b", "a\nb"}) {
    const auto put_bad = put(key, "x");
    ASSERT_FALSE(put_bad) << key;
    EXPECT_EQ(Errc::kInvalidArgument, put_bad.error().code);
  }
  for (const char* bad : {"", "..", "a/b", "a.b"}) {
    tenant = bad;
    EXPECT_EQ(Errc::kInvalidArgument, put("key", "x").error().code) << bad;
  }
}

TEST_F(ObjectStoreTest, TenantsDoNotSeeEachOther) {
  ASSERT_TRUE(put("a", "acme's"));
  tenant = "other";
  EXPECT_EQ(Errc::kNotFound, open("a").error().code);
  ASSERT_TRUE(put("a", "other's"));
  EXPECT_EQ("other's", read("a"));
  EXPECT_THAT(keys(), ElementsAre("a"));
}

TEST_F(ObjectStoreTest, EqualContentOfATenantIsStoredOnce) {
  ASSERT_TRUE(put("a", filled(60'000, 'x')));
  ASSERT_TRUE(put("b", filled(40'000, 'y')));
  const auto twice = put("c", filled(60'000, 'x'));
  ASSERT_TRUE(twice) << twice.error().message;
  ASSERT_TRUE(store->remove({tenant, "a"}));
  EXPECT_EQ(filled(60'000, 'x'), read("c"));
  ASSERT_TRUE(store->remove({tenant, "b"}));
  ASSERT_TRUE(store->remove({tenant, "c"}));
  EXPECT_EQ(Bytes(0), store->usage().memory);
}

TEST_F(ObjectStoreTest, WrittenByMappingAndSealed) {
  auto memory = create("mapped", kib(8));
  ASSERT_TRUE(memory);
  EXPECT_EQ(ObjectState::kPending, store->info({tenant, "mapped"})->state);
  void* address = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memory->get(), 0);
  ASSERT_NE(MAP_FAILED, address);
  std::memset(address, 'm', 8192);
  ::munmap(address, 8192);
  memory->reset();
  ASSERT_TRUE(seal("mapped"));
  EXPECT_EQ(filled(8192, 'm'), read("mapped"));
  EXPECT_EQ(Errc::kConflict, seal("mapped").error().code);
}

TEST_F(ObjectStoreTest, AMappingThatOutlivesTheSealDoesNotChangeTheObject) {
  auto memory = create("mapped", Bytes(4));
  ASSERT_TRUE(memory);
  ASSERT_EQ(4, ::pwrite(memory->get(), "true", 4, 0));
  ASSERT_TRUE(seal("mapped"));
  ASSERT_EQ(4, ::pwrite(memory->get(), "lies", 4, 0));
  EXPECT_EQ("true", read("mapped"));
}

TEST_F(ObjectStoreTest, AFileThatWasTruncatedIsNotSealed) {
  auto memory = create("cut", Bytes(100));
  ASSERT_TRUE(memory);
  ASSERT_EQ(0, ::ftruncate(memory->get(), 10));
  const auto sealed = seal("cut");
  ASSERT_FALSE(sealed);
  EXPECT_THAT(sealed.error().message, HasSubstr("has 10 bytes, the object was created with 100"));
  EXPECT_TRUE(put("cut", "again"));
}

TEST_F(ObjectStoreTest, SealedMemoryCannotBeOpenedForWriting) {
  const auto info = put("a", "sealed");
  struct stat file {};
  ASSERT_EQ(0, ::stat(info->path.c_str(), &file));
  EXPECT_EQ(0444u, file.st_mode & 07777);
  EXPECT_EQ(-1, ::pwrite(open("a")->memory.get(), "x", 1, 0));
}

TEST_F(ObjectStoreTest, TheLeastRecentlyUsedIsSpilledAndComesBack) {
  ASSERT_TRUE(put("a", filled(40'000, 'a')));
  ASSERT_TRUE(put("b", filled(40'000, 'b')));
  EXPECT_EQ(filled(40'000, 'a'), read("a"));
  ASSERT_TRUE(put("c", filled(40'000, 'c')));
  EXPECT_EQ(ObjectState::kSealed, store->info({tenant, "a"})->state);
  EXPECT_EQ(ObjectState::kSpilled, store->info({tenant, "b"})->state);
  EXPECT_LE(store->usage().memory, kib(100));
  for (const char* key : {"b", "a", "c", "b"}) EXPECT_EQ(filled(40'000, key[0]), read(key));
  EXPECT_GE(store->usage().reads_back, 1u);
}

TEST_F(ObjectStoreTest, WhereMemoryAndDiskAreFullItIsReadOnDisk) {
  settings.spill_limit = kib(60);
  reopen();
  ASSERT_TRUE(put("a", filled(60'000, 'a')));
  ASSERT_TRUE(put("b", filled(60'000, 'b')));
  ASSERT_TRUE(put("c", filled(40'000, 'c')));
  EXPECT_EQ(filled(60'000, 'a'), read("a"));
  EXPECT_EQ(ObjectState::kSpilled, store->info({tenant, "a"})->state);
  EXPECT_EQ(filled(60'000, 'b'), read("b"));
}

TEST_F(ObjectStoreTest, ADescriptorOutlivesSpillAndRemoval) {
  ASSERT_TRUE(put("a", filled(90'000, 'a')));
  const auto opened = open("a");
  ASSERT_TRUE(opened);
  ASSERT_TRUE(put("b", filled(90'000, 'b')));
  ASSERT_EQ(ObjectState::kSpilled, store->info({tenant, "a"})->state);
  ASSERT_TRUE(store->remove({tenant, "a"}));
  EXPECT_EQ(filled(90'000, 'a'), contents_of(opened->memory));
}

TEST_F(ObjectStoreTest, LimitsAreNamedWhereNothingCanBeSpilled) {
  EXPECT_EQ(Errc::kTooLarge, put("large", filled(kib(101).count(), 'l')).error().code);
  auto held = create("held", kib(60));
  ASSERT_TRUE(held);
  const auto refused = put("b", filled(50'000, 'b'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(Errc::kResourceExhausted, refused.error().code);
  EXPECT_THAT(refused.error().message, HasSubstr("raise --object-memory"));
  store->abandon({tenant, "held"}, {Errc::kUnavailable, "the client has gone"});
  EXPECT_TRUE(put("b", filled(50'000, 'b')));
}

TEST_F(ObjectStoreTest, ATenantsQuotaCoversMemoryAndDisk) {
  settings.tenant_quota = kib(150);
  reopen();
  ASSERT_TRUE(put("a", filled(80'000, 'a')));
  ASSERT_TRUE(put("b", filled(60'000, 'b')));
  const auto refused = put("c", filled(20'000, 'c'));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("tenant 'acme' holds 140000 bytes"));
  tenant = "other";
  EXPECT_TRUE(put("c", filled(20'000, 'c')));
}

TEST_F(ObjectStoreTest, EverySealedObjectSurvivesTheNode) {
  ASSERT_TRUE(put("a", filled(60'000, 'a')));
  ASSERT_TRUE(put("b", filled(60'000, 'b'), seconds(60)));  // a is spilled
  ASSERT_TRUE(put("same", filled(60'000, 'b')));
  auto half = create("half", kib(10));
  reopen();
  EXPECT_THAT(keys(), ElementsAre("a", "b", "same"));
  EXPECT_EQ(now_ms + 60'000, store->info({tenant, "b"})->expires_ms);
  EXPECT_EQ(filled(60'000, 'a'), read("a"));
  EXPECT_EQ(filled(60'000, 'b'), read("same"));
  EXPECT_EQ(0u, files_below("memory/pending"));
}

TEST_F(ObjectStoreTest, ASmallerMemorySpillsWhatItFinds) {
  ASSERT_TRUE(put("a", filled(50'000, 'a')));
  ASSERT_TRUE(put("b", filled(40'000, 'b')));
  settings.memory_limit = kib(60);
  reopen();
  EXPECT_EQ(filled(50'000, 'a'), read("a"));
  EXPECT_EQ(filled(40'000, 'b'), read("b"));
  while (store->usage().memory > kib(60)) ASSERT_GT(io.run_one_for(std::chrono::minutes(2)), 0U) << "nothing spills";
}

TEST_F(ObjectStoreTest, DamageOnDiskIsFoundAndNamed) {
  ASSERT_TRUE(put("a", filled(90'000, 'a')));
  ASSERT_TRUE(put("b", filled(90'000, 'b')));
  std::string spilled;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "spill/acme")) spilled = entry.path();
  std::filesystem::permissions(spilled, std::filesystem::perms::owner_all);
  std::fstream(spilled, std::ios::in | std::ios::out | std::ios::binary).seekp(1000) << "X";
  const auto opened = open("a");
  ASSERT_FALSE(opened);
  EXPECT_EQ(Errc::kCorrupt, opened.error().code);
  EXPECT_THAT(opened.error().message, HasSubstr(spilled));
  std::filesystem::resize_file(spilled, 1000);
  EXPECT_THAT(open("a").error().message, HasSubstr("has 1000 bytes: 90000 bytes were spilled"));
  EXPECT_EQ(filled(90'000, 'b'), read("b"));
}

TEST_F(ObjectStoreTest, ARecordWithoutItsBytesIsAFailedObjectNotAMissingOne) {
  const auto info = put("a", "bytes");
  std::filesystem::remove(info->path);
  folder.write("memory/records/torn", "{\"tenant\":");
  reopen();
  EXPECT_EQ(Errc::kCorrupt, open("a").error().code);
  EXPECT_EQ(ObjectState::kFailed, store->info({tenant, "a"})->state);
  ASSERT_TRUE(put("a", "bytes again"));
  reopen();
  EXPECT_EQ("bytes again", read("a"));
}

// Where objects lie on a disk, since there is no /dev/shm: nothing of them was synced.
TEST_F(ObjectStoreTest, WhatAPowerCutTookAPartOfIsLostAndNotServed) {
  const auto torn = put("torn", filled(9000, 't'));
  ASSERT_TRUE(put("whole", "whole"));
  std::filesystem::permissions(torn->path, std::filesystem::perms::owner_all);
  std::fstream(torn->path, std::ios::in | std::ios::out | std::ios::binary).seekp(4096) << filled(512, '\0');
  folder.write("memory/boot", "another");
  reopen();
  EXPECT_EQ(Errc::kCorrupt, open("torn").error().code);
  EXPECT_EQ("whole", read("whole"));
  ASSERT_TRUE(put("torn", filled(9000, 't')));
  EXPECT_EQ(filled(9000, 't'), read("torn")) << "what was damaged is in nobody's way";
  EXPECT_NE(folder.read("memory/boot"), "another");
}

TEST_F(ObjectStoreTest, AReaderWaitsForWhatIsExpected) {
  ASSERT_TRUE(store->expect({tenant, "out"}, Bytes(0)));
  std::optional<Result<OpenObject>> waiting;
  store->open_object({tenant, "out"}, seconds(100), into(waiting));
  EXPECT_EQ(Errc::kAlreadyExists, store->expect({tenant, "out"}, Bytes(0)).error().code);
  ASSERT_TRUE(put("out", "result"));
  EXPECT_EQ("result", contents_of(wait_for(waiting)->memory));
}

// What could not be kept is refused before anybody makes it: a key that was promised can be read.
TEST_F(ObjectStoreTest, WhatIsExpectedCountsAgainstTheQuota) {
  settings.memory_limit = kib(100);
  settings.tenant_quota = kib(150);
  reopen();
  EXPECT_EQ(store->expect({tenant, "out"}, kib(101)).error().code, Errc::kTooLarge);
  ASSERT_TRUE(store->expect({tenant, "out"}, kib(80)));
  EXPECT_EQ(store->expect({tenant, "more"}, kib(80)).error().code, Errc::kResourceExhausted);
  EXPECT_EQ(store->info({tenant, "more"}).error().code, Errc::kNotFound) << "what is refused leaves nothing";
  EXPECT_EQ(put("file", std::string(80 << 10, 'f')).error().code, Errc::kResourceExhausted);
  store->abandon({tenant, "out"}, {Errc::kUnavailable, "its task failed"});
  EXPECT_TRUE(put("file", std::string(80 << 10, 'f')));
  EXPECT_EQ(store->expect({tenant, "out"}, kib(80)).error().code, Errc::kResourceExhausted);
  ASSERT_TRUE(store->expect({"other", "out"}, kib(80)));
}

TEST_F(ObjectStoreTest, WhatIsPromisedCanBeFetchedHoweverMuchElseCame) {
  settings.memory_limit = kib(100);
  settings.tenant_quota = kib(150);
  reopen();
  ASSERT_TRUE(store->expect({tenant, "out"}, kib(80)));
  ASSERT_TRUE(
      store->promise({tenant, "out"}, kib(80), [](UniqueFd, const std::function<void(Status)>& done) { done({}); }));
  EXPECT_TRUE(put("a", std::string(60 << 10, 'a')));
  EXPECT_EQ(put("b", std::string(60 << 10, 'b')).error().code, Errc::kResourceExhausted);
  EXPECT_TRUE(open("out"));
  ASSERT_TRUE(store->remove({tenant, "out"}));
  EXPECT_TRUE(put("b", std::string(60 << 10, 'b')));
}

TEST_F(ObjectStoreTest, PatienceEnds) {
  ASSERT_TRUE(store->expect({tenant, "out"}, Bytes(0)));
  EXPECT_EQ(Errc::kDeadlineExceeded, open("out", milliseconds(1)).error().code);
  EXPECT_EQ(Errc::kDeadlineExceeded, open("out").error().code);
  EXPECT_EQ(Errc::kNotFound, open("never", seconds(100)).error().code);
}

TEST_F(ObjectStoreTest, AFailureReachesWaitersAndLaterReaders) {
  ASSERT_TRUE(store->expect({tenant, "out"}, Bytes(0)));
  std::optional<Result<OpenObject>> waiting;
  store->open_object({tenant, "out"}, seconds(100), into(waiting));
  store->abandon({tenant, "out"}, {Errc::kUnavailable, "its task ended: run it again"});
  EXPECT_THAT(wait_for(waiting).error().message, HasSubstr("object 'out' of tenant 'acme': its task ended"));
  EXPECT_EQ(Errc::kUnavailable, open("out").error().code);
  EXPECT_TRUE(put("out", "second try"));
  EXPECT_EQ("second try", read("out"));
}

TEST_F(ObjectStoreTest, AnOutputOnADeviceIsFetchedOnceWhenItIsWanted) {
  int fetches = 0;
  std::function<void(Status)> fetched;
  UniqueFd destination;
  ASSERT_TRUE(store->promise({tenant, "out"}, Bytes(6), [&](UniqueFd memory, std::function<void(Status)> done) {
    ++fetches;
    destination = std::move(memory);
    fetched = std::move(done);
  }));
  EXPECT_EQ(ObjectState::kOnDevice, store->info({tenant, "out"})->state);
  EXPECT_EQ(Bytes(6), store->usage().on_device);
  std::optional<Result<OpenObject>> first;
  std::optional<Result<OpenObject>> second;
  store->open_object({tenant, "out"}, Duration(0), into(first));
  store->open_object({tenant, "out"}, Duration(0), into(second));
  while (!fetched) ASSERT_GT(io.run_one_for(std::chrono::minutes(2)), 0u);
  ASSERT_EQ(6, ::pwrite(destination.get(), "device", 6, 0));
  destination.reset();
  fetched({});
  EXPECT_EQ("device", contents_of(wait_for(first)->memory));
  EXPECT_EQ("device", contents_of(wait_for(second)->memory));
  EXPECT_EQ(1, fetches);
  reopen();
  EXPECT_EQ("device", read("out"));
}

TEST_F(ObjectStoreTest, WhoPromisedAnObjectHearsOnceThatItIsGone) {
  std::map<std::string, int> gone;
  const auto promise = [&](const std::string& key, ObjectStore::Fetch fetch) {
    ASSERT_TRUE(store->promise({tenant, key}, Bytes(6), std::move(fetch), [&gone, key] { ++gone[key]; }));
  };
  const auto writes = [](UniqueFd memory, const std::function<void(Status)>& done) {
    FL_CHECK(::pwrite(memory.get(), "device", 6, 0) == 6);
    memory.reset();
    done({});
  };
  for (const char* key : {"deleted", "abandoned", "sealed", "stays"}) promise(key, writes);
  promise("lost", [](UniqueFd, const std::function<void(Status)>& done) { done(fail(Errc::kUnavailable, "ended")); });
  EXPECT_EQ("device", read("sealed"));
  EXPECT_EQ("device", read("stays"));
  ASSERT_TRUE(store->remove({tenant, "deleted"}));
  store->abandon({tenant, "abandoned"}, {Errc::kUnavailable, "its device server ended"});
  EXPECT_FALSE(open("lost"));
  ASSERT_TRUE(store->remove({tenant, "lost"}));  // nobody's any more
  EXPECT_TRUE(put("deleted", "another"));
  ASSERT_TRUE(store->remove({tenant, "deleted"}));
  ASSERT_TRUE(store->remove({tenant, "sealed"}));
  io.restart();
  io.poll();
  EXPECT_THAT(gone, ElementsAre(testing::Pair("abandoned", 1), testing::Pair("deleted", 1), testing::Pair("lost", 1),
                                testing::Pair("sealed", 1)));
}

TEST_F(ObjectStoreTest, AFetchThatFailsFailsTheObject) {
  ASSERT_TRUE(store->promise({tenant, "out"}, Bytes(6), [](UniqueFd, const std::function<void(Status)>& done) {
    done(fail(Errc::kUnavailable, "the device server ended"));
  }));
  EXPECT_EQ(Errc::kUnavailable, open("out").error().code);
  EXPECT_EQ(ObjectState::kFailed, store->info({tenant, "out"})->state);
}

TEST_F(ObjectStoreTest, AFetchWithoutMemoryMayBeTriedAgain) {
  auto held = create("held", kib(100));
  ASSERT_TRUE(store->promise({tenant, "out"}, Bytes(6), [](UniqueFd memory, const std::function<void(Status)>& done) {
    FL_CHECK(::pwrite(memory.get(), "device", 6, 0) == 6);
    memory.reset();
    done({});
  }));
  EXPECT_EQ(Errc::kResourceExhausted, open("out").error().code);
  ASSERT_TRUE(store->remove({tenant, "held"}));
  EXPECT_EQ("device", read("out"));
}

TEST_F(ObjectStoreTest, LifetimesEndAlsoWhileNobodyRuns) {
  ASSERT_TRUE(put("short", "s", milliseconds(500)));
  ASSERT_TRUE(put("long", "l", seconds(1000)));
  now_ms += 500;
  reopen();
  EXPECT_THAT(keys(), ElementsAre("long"));
  EXPECT_EQ(1u, files_below("memory/content"));
}

TEST_F(ObjectStoreTest, ALifetimeEndsWhileTheNodeRuns) {
  ASSERT_TRUE(put("short", "s", milliseconds(1)));
  now_ms += 1;
  while (!keys().empty()) ASSERT_GT(io.run_one_for(std::chrono::minutes(2)), 0u);
  EXPECT_EQ(Bytes(0), store->usage().memory);
}

TEST_F(ObjectStoreTest, AnObjectThatIsNeverSealedGivesItsMemoryBack) {
  settings.write_limit = milliseconds(1);
  reopen();
  auto memory = create("forgotten", kib(100));
  ASSERT_TRUE(memory);
  now_ms += 1;
  while (store->info({tenant, "forgotten"})->state == ObjectState::kPending) {
    ASSERT_GT(io.run_one_for(std::chrono::minutes(2)), 0u);
  }
  EXPECT_EQ(Bytes(0), store->usage().memory);
  EXPECT_THAT(open("forgotten").error().message, HasSubstr("not sealed in time"));
}

TEST_F(ObjectStoreTest, DeletingDuringSealAndSpillLeavesNothing) {
  ASSERT_TRUE(put("a", filled(90'000, 'a')));
  std::optional<Result<ObjectInfo>> result;
  store->put({tenant, "b"}, filled(90'000, 'b'), {}, into(result));  // waits for a to be spilled
  ASSERT_TRUE(store->remove({tenant, "a"}));
  ASSERT_TRUE(store->remove({tenant, "b"}));
  EXPECT_EQ(Errc::kNotFound, wait_for(result).error().code);
  while (store->usage().memory > Bytes(0) || files_below("memory") > kOwnFiles || files_below("spill") > 0) {
    ASSERT_GT(io.run_one_for(std::chrono::minutes(2)), 0u);
  }
}

TEST_F(ObjectStoreTest, AbandoningWhatIsBeingWrittenAnswersItsWriter) {
  ASSERT_TRUE(put("a", filled(90'000, 'a')));
  std::optional<Result<ObjectInfo>> waits;
  std::optional<Result<ObjectInfo>> writes;
  store->put({tenant, "waits"}, filled(90'000, 'b'), {}, into(waits));
  store->abandon({tenant, "waits"}, {Errc::kUnavailable, "changed my mind"});
  store->put({tenant, "writes"}, filled(5'000, 'c'), {}, into(writes));
  store->abandon({tenant, "writes"}, {Errc::kUnavailable, "changed my mind"});
  EXPECT_EQ(Errc::kNotFound, wait_for(waits).error().code);
  EXPECT_EQ(Errc::kNotFound, wait_for(writes).error().code);
  EXPECT_EQ(Errc::kUnavailable, open("waits").error().code);
  EXPECT_TRUE(put("waits", "second try"));
}

TEST_F(ObjectStoreTest, ARefusalAndARemovalMayCross) {
  auto held = create("held", kib(100));
  std::optional<Result<ObjectInfo>> refused;
  store->put({tenant, "refused"}, "no room", {}, into(refused));
  ASSERT_TRUE(store->remove({tenant, "refused"}));
  EXPECT_FALSE(wait_for(refused));
  EXPECT_THAT(keys(), ElementsAre("held"));
}

TEST_F(ObjectStoreTest, ListsByPrefixAfterAKeyAndUpToALimit) {
  for (const char* key : {"b/1", "a", "b/2", "b/3", "c"}) ASSERT_TRUE(put(key, key));
  EXPECT_THAT(keys(), ElementsAre("a", "b/1", "b/2", "b/3", "c"));
  EXPECT_THAT(keys("b/"), ElementsAre("b/1", "b/2", "b/3"));
  EXPECT_THAT(keys("b/", "b/1", 1), ElementsAre("b/2"));
  EXPECT_THAT(keys("", "b/3"), ElementsAre("c"));
}

TEST_F(ObjectStoreTest, AFolderThatIsOpenToOthersIsRefused) {
  std::filesystem::create_directory(folder / "open");
  std::filesystem::permissions(folder / "open", std::filesystem::perms::all);
  boost::asio::io_context other;
  const auto refused = ObjectStore::open(other, {.memory_dir = folder / "open", .spill_dir = folder / "spill2"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("mode 777"));
}

TEST_F(ObjectStoreTest, FilesOfOthersInItsFoldersStay) {
  folder.write("spill/photos/cat.jpg", "not an object");
  folder.write("memory/notes", "nor this");
  reopen();
  store.reset();
  EXPECT_EQ("not an object", folder.read("spill/photos/cat.jpg"));
  EXPECT_EQ("nor this", folder.read("memory/notes"));
}

TEST_F(ObjectStoreTest, OneNodeAtATime) {
  boost::asio::io_context other;
  const auto second = ObjectStore::open(other, {.memory_dir = folder / "memory", .spill_dir = folder / "spill"});
  ASSERT_FALSE(second);
  EXPECT_EQ(Errc::kConflict, second.error().code);
}

// ---- reservations and watching

TEST_F(ObjectStoreTest, AReservedKeyIsAReferenceThatAnybodyMayWrite) {
  ASSERT_TRUE(store->reserve({tenant, "out"}));
  EXPECT_EQ(ObjectState::kPending, store->info({tenant, "out"})->state);
  EXPECT_EQ(Errc::kAlreadyExists, store->reserve({tenant, "out"}).error().code);
  std::optional<Result<OpenObject>> waiting;
  store->open_object({tenant, "out"}, seconds(60), into(waiting));
  ASSERT_TRUE(put("out", "bytes"));
  EXPECT_EQ("bytes", contents_of(wait_for(waiting)->memory));
  store->release({tenant, "out"}, {Errc::kInternal, "late"});
  EXPECT_EQ("bytes", read("out"));
  EXPECT_EQ(Errc::kAlreadyExists, store->reserve({tenant, "out"}).error().code);
}

TEST_F(ObjectStoreTest, AReservationOutlivesWhoeverDidNotSucceed) {
  ASSERT_TRUE(store->reserve({tenant, "out"}));
  std::optional<Result<OpenObject>> waiting;
  store->open_object({tenant, "out"}, seconds(60), into(waiting));
  ASSERT_TRUE(store->expect({tenant, "out"}, Bytes(0)));  // as a kernel task does
  EXPECT_EQ(Errc::kAlreadyExists, store->expect({tenant, "out"}, Bytes(0)).error().code);
  store->abandon({tenant, "out"}, {Errc::kUnavailable, "the kernel faulted"});
  ASSERT_TRUE(create("out", Bytes(5)));
  store->abandon({tenant, "out"}, {Errc::kUnavailable, "not written"});
  EXPECT_FALSE(put("out", filled(200 << 10, 'x')));
  EXPECT_FALSE(waiting);
  ASSERT_TRUE(store->expect({tenant, "out"}, Bytes(0)));
  store->abandon({tenant, "out"}, {Errc::kUnavailable, "again"});
  store->release({tenant, "out"}, {Errc::kUnavailable, "node a failed"});
  EXPECT_THAT(wait_for(waiting).error().message, HasSubstr("node a failed"));
  EXPECT_THAT(read("out"), HasSubstr("node a failed"));
  EXPECT_TRUE(put("out", "free again"));
}

TEST_F(ObjectStoreTest, AReaderOfAReservedKeyLosesPatienceEvenAfterAFailedWriter) {
  ASSERT_TRUE(store->reserve({tenant, "out"}));
  ASSERT_TRUE(store->expect({tenant, "out"}, Bytes(0)));
  std::optional<Result<OpenObject>> waiting;
  store->open_object({tenant, "out"}, milliseconds(20), into(waiting));
  store->abandon({tenant, "out"}, {Errc::kUnavailable, "the kernel faulted"});
  EXPECT_EQ(Errc::kDeadlineExceeded, wait_for(waiting).error().code);
}

TEST_F(ObjectStoreTest, AWatcherHearsOnceOfAnObjectThatIsThereOrComes) {
  int sealed = 0, promised = 0, present = 0, unwatched = 0;
  const auto count = [](int& calls) { return [&calls](const Status& status) { calls += status ? 1 : 100; }; };
  store->watch({tenant, "sealed"}, count(sealed));
  store->watch({tenant, "promised"}, count(promised));
  store->unwatch(store->watch({tenant, "sealed"}, count(unwatched)));
  ASSERT_TRUE(put("sealed", "x"));
  ASSERT_TRUE(store->promise({tenant, "promised"}, Bytes(1), [](UniqueFd, const std::function<void(Status)>&) {}));
  store->watch({tenant, "sealed"}, count(present));
  store->unwatch(store->watch({tenant, "sealed"}, count(unwatched)));  // told already, not yet called
  EXPECT_EQ(present, 0);                                               // never from inside a call
  io.restart();
  io.poll();
  EXPECT_EQ(std::vector({sealed, promised, present, unwatched}), std::vector({1, 1, 1, 0}));
}

TEST_F(ObjectStoreTest, AWatcherHearsOfAFailureThatHappensNowAndNotOfAnOldOne) {
  ASSERT_TRUE(store->expect({tenant, "a"}, Bytes(0)));
  store->abandon({tenant, "a"}, {Errc::kUnavailable, "old"});
  std::vector<std::string> heard;
  store->watch({tenant, "a"},
               [&](const Status& status) { heard.push_back(status ? "there" : status.error().message); });
  ASSERT_TRUE(store->expect({tenant, "a"}, Bytes(0)));
  io.restart();
  io.poll();
  EXPECT_TRUE(heard.empty());
  store->abandon({tenant, "a"}, {Errc::kUnavailable, "new"});
  io.restart();
  io.poll();
  EXPECT_THAT(heard, ElementsAre(HasSubstr("new")));
}

}  // namespace
}  // namespace fairlead
