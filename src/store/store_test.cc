#include "store/store.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "store/records.h"
#include "store/schema.h"
#include "store/test_folder.h"

namespace fairlead {
namespace {

using store::TestFolder;
using testing::ElementsAre;
using testing::HasSubstr;

QueuedEvent event(const std::string& id, std::int64_t accepted_ms = 0) {
  return {.invocation = {.request_id = id, .function = "f", .payload = "p", .trace_id = "Root=" + id},
          .accepted_ms = accepted_ms};
}

FunctionRecord record(const std::string& name) {
  FunctionRecord function;
  function.name = name;
  return function;
}

std::unique_ptr<Store> open_store(boost::asio::io_context& io, const std::string& folder) {
  Result<std::unique_ptr<Store>> store = Store::open(io, folder);
  FL_CHECK(store.has_value(), "{}", store.error().message);
  return std::move(*store);
}

// Runs one operation to its callback.
template <typename Start>
Status wait_for(boost::asio::io_context& io, Start start) {
  Status result = fail(Errc::kInternal, "the callback did not run");
  start([&result](Status status) { result = std::move(status); });
  io.restart();
  io.run();
  return result;
}

Status put(boost::asio::io_context& io, Store& store, QueuedEvent value) {
  return wait_for(io, [&](Store::Done done) { store.put_event(std::move(value), std::move(done)); });
}

std::vector<std::string> event_ids(Store& store) {
  std::vector<std::string> ids;
  const std::vector<QueuedEvent> events = store.load_events().value();
  for (const QueuedEvent& e : events) ids.push_back(e.invocation.request_id);
  return ids;
}

// As it was before there were any.
void drop_versions(store::Database& database) {
  for (const char* sql : {"DROP TABLE versions", "DROP TABLE version_numbers", "DROP TABLE aliases",
                          "ALTER TABLE functions DROP COLUMN in_place", "ALTER TABLE events DROP COLUMN version",
                          "ALTER TABLE dead_letters DROP COLUMN version"}) {
    ASSERT_TRUE(database.run(sql)) << sql;
  }
}

struct StoreTest : testing::Test {
  TestFolder folder;
  boost::asio::io_context io;
};

TEST_F(StoreTest, ADamagedImageIsAnErrorThatNamesTheFunction) {
  { open_store(io, folder.path()); }
  const auto put_image = [&](std::string_view text) {
    auto database = store::Database::open(store::database_path(folder.path())).value();
    ASSERT_TRUE(
        database->run("INSERT OR REPLACE INTO functions VALUES "
                      "('f','','','','',1,1,1,'{}','{}','',0,'','',0,NULL,?,'{}','[]','')",
                      text));
  };
  for (const char* text : {"[]", "{", R"({"uid":-1})", R"({"uid":65536})", R"({"uid":"0"})", R"({"command":[1]})",
                           R"({"environment":{"A":1}})", R"({"environment":[]})"}) {
    put_image(text);
    const auto functions = open_store(io, folder.path())->load_functions();
    ASSERT_FALSE(functions) << text;
    EXPECT_EQ(functions.error().code, Errc::kCorrupt);
    EXPECT_THAT(functions.error().message, HasSubstr("image of function f")) << text;
  }
  put_image("{}");
  EXPECT_TRUE(open_store(io, folder.path())->load_functions());
}

// A database of the first version, as a released node left it.
TEST_F(StoreTest, ADatabaseFromBeforeImagesTraceIdsAndDeadlinesIsMigrated) {
  {
    StateDamage found;
    auto database = store::open_state_database(folder.path(), found).value();
    for (const char* sql :
         {"DROP TABLE profiles",
          "ALTER TABLE functions DROP COLUMN in_place",
          "ALTER TABLE functions DROP COLUMN seats",
          "ALTER TABLE functions DROP COLUMN image",
          "ALTER TABLE functions DROP COLUMN image_config",
          "INSERT INTO functions VALUES ('old','d','r','h','provided',256,9,512,'{\"A\":\"1\"}','{}','c2hh',3,"
          "'code/abc','r1',7,2)",
          "DROP TABLE versions",
          "DROP TABLE version_numbers",
          "DROP TABLE aliases",
          "ALTER TABLE events DROP COLUMN version",
          "ALTER TABLE dead_letters DROP COLUMN version",
          "DROP TRIGGER tally_event_added",
          "DROP TRIGGER tally_event_over",
          "DROP TRIGGER tally_event_set",
          "DROP TRIGGER tally_function_set",
          "DROP TRIGGER tally_function_gone",
          "DROP TRIGGER tally_letter_added",
          "DROP TRIGGER tally_letter_gone",
          "DROP TRIGGER tally_config_set",
          "DROP TRIGGER tally_config_gone",
          "DROP TABLE tally",
          "ALTER TABLE events DROP COLUMN checksum",
          "ALTER TABLE dead_letters DROP COLUMN checksum",
          "ALTER TABLE events DROP COLUMN trace_id",
          "ALTER TABLE events DROP COLUMN deadline_ms",
          "ALTER TABLE events DROP COLUMN http",
          "DROP TABLE event_configs",
          "ALTER TABLE dead_letters DROP COLUMN client_context",
          "ALTER TABLE dead_letters DROP COLUMN trace_id",
          "ALTER TABLE dead_letters DROP COLUMN http",
          "INSERT INTO events VALUES ('e','old',x'7b7d','c',1,5,6)",
          "PRAGMA user_version = 1"}) {
      ASSERT_TRUE(database->run(sql)) << sql;
    }
  }
  auto store = open_store(io, folder.path());
  const auto functions = store->load_functions().value();
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0].config.memory_mib, 256);
  EXPECT_EQ(functions[0].config.package_type, PackageType::kZip);
  EXPECT_FALSE(functions[0].image);
  EXPECT_EQ(functions[0].code_path, folder / "code/abc");
  EXPECT_EQ(functions[0].reserved_concurrency, std::optional<int>(2));
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(functions[0], done); }));
  QueuedEvent event = store->load_events().value().at(0);
  EXPECT_EQ(event.invocation.request_id, "e");
  EXPECT_EQ(event.invocation.client_context, "c");
  EXPECT_EQ(event.invocation.trace_id, "");
  EXPECT_EQ(event.invocation.deadline_ms, std::nullopt);
  EXPECT_EQ(event.invocation.http, std::nullopt);
  EXPECT_EQ(event.attempts, 1);
  event.invocation.trace_id = "Root=1";
  ASSERT_TRUE(put(io, *store, event));
  EXPECT_EQ(store->load_events().value().at(0).invocation.trace_id, "Root=1");
}

TEST_F(StoreTest, LettersOfFunctionsThatWereDeletedBeforeAreRemovedOnce) {
  {
    StateDamage found;
    auto database = store::open_state_database(folder.path(), found).value();
    ASSERT_TRUE(store::put_function(*database, folder.path(), record("f")));
    for (const char* name : {"f", "deleted"}) {
      ASSERT_TRUE(database->run(
          "INSERT INTO dead_letters (request_id, function, payload, error_type, error_message, attempts, accepted_ms, "
          "failed_ms) VALUES (?1, ?1, x'', 'T', 'm', 1, 1, 1)",
          std::string_view(name)));
    }
    ASSERT_TRUE(database->run("ALTER TABLE functions DROP COLUMN seats"));  // the steps behind it add them
    ASSERT_TRUE(database->run("DROP TABLE profiles"));
    drop_versions(*database);
    ASSERT_TRUE(database->run("PRAGMA user_version = 7"));
  }
  StateDamage found;
  auto database = store::open_state_database(folder.path(), found).value();
  std::vector<DeadLetter> letters;
  ASSERT_TRUE(store::load_dead_letters(*database, "", 10, letters));
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].function, "f");
}

FunctionProfile profile_of(const std::string& function, const std::string& code, std::int64_t measured_ms) {
  FunctionProfile profile{.function = function, .code_sha256 = code, .device = "V100"};
  profile.trials = {{.rate_per_s = 10, .error = 0.02}};
  profile.work_ms = 100;
  profile.measured_ms = measured_ms;
  return profile;
}

// A database of the version before, as a released node left it.
TEST_F(StoreTest, ADatabaseFromBeforeProfilesIsMigrated) {
  {
    StateDamage found;
    auto database = store::open_state_database(folder.path(), found).value();
    ASSERT_TRUE(store::put_function(*database, folder.path(), record("f")));
    ASSERT_TRUE(database->run("DROP TABLE profiles"));
    drop_versions(*database);
    ASSERT_TRUE(database->run("PRAGMA user_version = 9"));
  }
  auto store = open_store(io, folder.path());
  EXPECT_EQ(store->load_functions()->size(), 1u);
  store->put_profile(profile_of("f", "c1", 5), {});
  EXPECT_EQ(store->load_profiles()->size(), 1u);
}

class DeadLetterLimitTest : public StoreTest {
 protected:
  DeadLetterLimitTest() {
    std::filesystem::create_directories(folder / "s");
    database = std::move(store::open_state_database(folder / "s", found).value());
  }

  void deploy(const std::string& name, const std::string& tenant) {
    FunctionRecord function = record(name);
    if (!tenant.empty()) function.config.tags["gpu:tenant"] = tenant;
    ASSERT_TRUE(store::put_function(*database, folder / "s", function));
  }
  void bury(std::int64_t count, const std::string& function) {
    for (std::int64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(store::bury_event(*database, {.request_id = std::to_string(next++), .function = function}));
    }
  }
  std::vector<DeadLetter> kept(const std::string& function = "") {
    std::vector<DeadLetter> letters;
    EXPECT_TRUE(store::load_dead_letters(*database, function, 1'000'000, letters));
    return letters;
  }

  StateDamage found;
  std::unique_ptr<store::Database> database;
  int next = 0;
};

TEST_F(DeadLetterLimitTest, TheOldestGoAndOneInAHundredMayBeTooMany) {
  deploy("f", "");
  ASSERT_TRUE(database->run("BEGIN"));
  constexpr std::int64_t kTooMany = store::kMaxDeadLetters / 100;
  bury(store::kMaxDeadLetters + kTooMany, "f");
  EXPECT_EQ(kept().size(), static_cast<std::size_t>(store::kMaxDeadLetters + kTooMany));
  bury(1, "f");
  EXPECT_EQ(kept().size(), static_cast<std::size_t>(store::kMaxDeadLetters));
  EXPECT_EQ(kept().back().request_id, std::to_string(kTooMany + 1));

  ASSERT_TRUE(database->run("DELETE FROM dead_letters WHERE id % 2 = 0"));
  const std::string oldest = kept().back().request_id;
  bury(store::kMaxDeadLetters / 2, "f");
  EXPECT_EQ(kept().back().request_id, oldest) << "letters that were redriven make room";
}

TEST_F(DeadLetterLimitTest, AFloodOfOneTenantPushesOutNobodyElses) {
  deploy("quiet", "acme");
  deploy("flood", "thief");
  deploy("flood-2", "thief");
  deploy("few", "thief");
  ASSERT_TRUE(database->run("BEGIN"));
  bury(20, "quiet");
  bury(10, "few");
  bury(store::kMaxDeadLetters, "flood");
  bury(store::kMaxDeadLetters, "flood-2");
  EXPECT_EQ(kept("quiet").size(), 20u);
  EXPECT_EQ(kept("few").size(), 10u) << "nor those of its own functions that fail seldom";
  EXPECT_GT(kept("flood").size(), 4'000u) << "nor all of what failed before";
  EXPECT_LE(kept().size(), static_cast<std::size_t>(store::kMaxDeadLetters * 101 / 100));
}

TEST_F(DeadLetterLimitTest, ManyFunctionsOfOneTenantCountTogether) {
  deploy("quiet", "acme");
  for (int i = 0; i < 50; ++i) deploy(fmt::format("thief-{}", i), "thief");
  ASSERT_TRUE(database->run("BEGIN"));
  bury(250, "quiet");
  for (int i = 0; i < 50; ++i) bury(210, fmt::format("thief-{}", i));
  EXPECT_EQ(kept("quiet").size(), 250u) << "more than any of the others has, and fewer than they have together";
}

TEST_F(StoreTest, DamagedDatabaseIsRefusedAndLeftAlone) {
  {
    auto store = open_store(io, folder.path());
    for (int i = 0; i < 300; ++i) store->put_event(event("event-" + std::to_string(i)), {});
  }
  std::string bytes = folder.read("state.db");
  ASSERT_GT(bytes.size(), 12'288u);
  std::memset(bytes.data() + 4096, 0x5a, 8192);  // two pages in the middle
  folder.write("state.db", bytes);

  Result<std::unique_ptr<Store>> store = Store::open(io, folder.path());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Errc::kCorrupt);
  EXPECT_THAT(store.error().message, HasSubstr(folder / "state.db"));
  EXPECT_THAT(store.error().message, HasSubstr("Restore a backup"));
  EXPECT_EQ(folder.read("state.db"), bytes);
}

TEST_F(StoreTest, FileThatIsNoDatabaseIsRefusedAndLeftAlone) {
  const std::string text(8192, 'x');
  folder.write("state.db", text);
  Result<std::unique_ptr<Store>> store = Store::open(io, folder.path());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Errc::kCorrupt);
  EXPECT_EQ(folder.read("state.db"), text);
}

TEST_F(StoreTest, ForeignAndNewerDatabasesAreRefused) {
  {
    auto database = store::Database::open(folder / "state.db").value();
    ASSERT_TRUE(database->run("CREATE TABLE theirs (x)"));
  }
  EXPECT_EQ(Store::open(io, folder.path()).error().code, Errc::kCorrupt);

  std::filesystem::remove(folder / "state.db");
  open_store(io, folder.path()).reset();
  {
    auto database = store::Database::open(folder / "state.db").value();
    ASSERT_TRUE(database->run("PRAGMA user_version = 99"));
  }
  Result<std::unique_ptr<Store>> newer = Store::open(io, folder.path());
  EXPECT_EQ(newer.error().code, Errc::kConflict);
  EXPECT_THAT(newer.error().message, HasSubstr("version 99"));
}

// Exit status of the child: 0 all held, 77 this machine cannot mount, else the number of the step that failed.
int fill_a_small_disk(const std::string& folder) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=2m") != 0) return 77;
  boost::asio::io_context io;
  auto store = open_store(io, folder);
  if (!put(io, *store, event("before"))) return 1;
  {
    std::ofstream filler(folder + "/filler", std::ios::binary);
    const std::string block(64 << 10, 'x');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())) && filler.flush()) {
    }
  }
  QueuedEvent large = event("large");
  large.invocation.payload.assign(512 << 10, 'y');
  Status full = put(io, *store, large);
  if (full) return 2;
  if (full.error().code != Errc::kResourceExhausted) return 3;
  std::filesystem::remove(folder + "/filler");
  if (!put(io, *store, large)) return 4;
  if (event_ids(*store) != std::vector<std::string>{"before", "large"}) return 5;
  return 0;
}

TEST_F(StoreTest, FullDiskFailsTheWriteAndRecovers) {
  pid_t child = fork();
  if (child == 0) _exit(fill_a_small_disk(folder.path()));
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "mounting a tmpfs needs CAP_SYS_ADMIN";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace fairlead
