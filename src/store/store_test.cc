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

struct StoreTest : testing::Test {
  TestFolder folder;
  boost::asio::io_context io;
};

TEST_F(StoreTest, FunctionsComeBackAfterReopening) {
  FunctionRecord record;
  record.name = "resize";
  record.config.description = "makes \"small\" images";
  record.config.handler = "app.handler";
  record.config.memory_mib = 1024;
  record.config.environment = {{"KEY", "value=with=signs"}, {"UMLAUT", "ä"}};
  record.config.tags = {{"gpu:weight", "2"}};
  record.code_sha256 = "c2hh";
  record.code_bytes = 123;
  record.code_path = folder / "code/abc";
  record.revision_id = "r1";
  record.last_modified_ms = 1'700'000'000'000;
  record.reserved_concurrency = 0;
  record.seats = {"GPU-2", "GPU-1", "GPU-1"};
  {
    auto store = open_store(io, folder.path());
    ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record, done); }));
  }
  auto functions = open_store(io, folder.path())->load_functions().value();
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0].name, record.name);
  EXPECT_EQ(functions[0].config, record.config);
  EXPECT_EQ(functions[0].code_path, record.code_path);
  EXPECT_EQ(functions[0].code_bytes, 123);
  EXPECT_EQ(functions[0].revision_id, "r1");
  EXPECT_EQ(functions[0].last_modified_ms, record.last_modified_ms);
  EXPECT_EQ(functions[0].reserved_concurrency, std::optional<int>(0));
  EXPECT_EQ(functions[0].seats, record.seats);
}

TEST_F(StoreTest, AnImageComesBackWhole) {
  FunctionRecord record;
  record.name = "f";
  record.config.package_type = PackageType::kImage;
  record.config.image_config = {.entry_point = {"python3"}, .command = {"a", ""}, .working_directory = "/w"};
  record.image = FunctionImage{.uri = "app:1", .resolved_uri = "app@sha256:1", .digest = "sha256:1", .bytes = 5};
  record.image->defaults = {.entry_point = {"/e"},
                            .command = {"c"},
                            .working_directory = "/d",
                            .environment = {{"A", "=b"}},
                            .uid = 1000,
                            .gid = 65535};
  {
    auto store = open_store(io, folder.path());
    ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record, done); }));
  }
  const auto functions = open_store(io, folder.path())->load_functions().value();
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0].config, record.config);
  EXPECT_EQ(functions[0].image, record.image);
}

TEST_F(StoreTest, ADamagedImageIsAnErrorThatNamesTheFunction) {
  { open_store(io, folder.path()); }
  const auto put_image = [&](std::string_view text) {
    auto database = store::Database::open(store::database_path(folder.path())).value();
    ASSERT_TRUE(
        database->run("INSERT OR REPLACE INTO functions VALUES "
                      "('f','','','','',1,1,1,'{}','{}','',0,'','',0,NULL,?,'{}','[]')",
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
          "ALTER TABLE functions DROP COLUMN seats",
          "ALTER TABLE functions DROP COLUMN image",
          "ALTER TABLE functions DROP COLUMN image_config",
          "INSERT INTO functions VALUES ('old','d','r','h','provided',256,9,512,'{\"A\":\"1\"}','{}','c2hh',3,"
          "'code/abc','r1',7,2)",
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

TEST_F(StoreTest, CodePathsFollowAMovedStateFolder) {
  FunctionRecord record;
  record.name = "f";
  record.code_path = folder / "a/code/abc";
  {
    auto store = open_store(io, folder / "a");
    ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record, done); }));
  }
  std::filesystem::rename(folder / "a", folder / "b");
  EXPECT_EQ(open_store(io, folder / "b")->load_functions().value()[0].code_path, folder / "b/code/abc");
}

TEST_F(StoreTest, DeletedFunctionIsGoneAndUtf8IsRequired) {
  auto store = open_store(io, folder.path());
  FunctionRecord record;
  record.name = "f";
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record, done); }));
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->delete_function("f", done); }));
  EXPECT_TRUE(store->load_functions().value().empty());

  record.config.environment = {{"KEY", "\xff"}};
  Status status = wait_for(io, [&](auto done) { store->put_function(record, done); });
  EXPECT_EQ(status.error().code, Errc::kInvalidArgument);
}

TEST_F(StoreTest, EventsComeBackInOrderOfAcceptanceWithBinaryPayloads) {
  const std::string binary("\0\xff\n\0", 4);
  {
    auto store = open_store(io, folder.path());
    QueuedEvent second = event("b", 2);
    second.invocation.payload = binary;
    second.not_before_ms = 77;
    second.invocation.deadline_ms = 99;
    second.invocation.http = {.method = "PUT", .path = "/a?b=c", .headers = {{"A", "x: y"}, {"B", ""}, {"A", "\xff"}}};
    ASSERT_TRUE(put(io, *store, second));
    ASSERT_TRUE(put(io, *store, event("a", 1)));
    ASSERT_TRUE(put(io, *store, event("c", 3)));
    second.attempts = 2;  // replaced in place
    ASSERT_TRUE(put(io, *store, second));
    ASSERT_TRUE(wait_for(io, [&](auto done) { store->finish_event("c", done); }));
  }
  auto events = open_store(io, folder.path())->load_events().value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].invocation.request_id, "a");
  EXPECT_EQ(events[1].invocation.payload, binary);
  EXPECT_EQ(events[1].invocation.trace_id, "Root=b");
  EXPECT_EQ(events[1].attempts, 2);
  EXPECT_EQ(events[1].not_before_ms, 77);
  EXPECT_EQ(events[1].invocation.deadline_ms, std::optional<std::int64_t>(99));
  const HttpPart asked{.method = "PUT", .path = "/a?b=c", .headers = {{"A", "x: y"}, {"B", ""}, {"A", "\xff"}}};
  EXPECT_EQ(events[1].invocation.http, asked);
  EXPECT_EQ(events[0].invocation.http, std::nullopt);
}

TEST_F(StoreTest, ARetryChangesAttemptsAndBackOffAndNothingElse) {
  {
    auto store = open_store(io, folder.path());
    QueuedEvent held = event("a", 1);
    ASSERT_TRUE(put(io, *store, held));
    held.attempts = 2;
    held.not_before_ms = 77;
    ASSERT_TRUE(wait_for(io, [&](auto done) { store->retry_event(held, done); }));
  }
  auto store = open_store(io, folder.path());
  const std::vector<QueuedEvent> events = store->load_events().value();
  ASSERT_EQ(events.size(), 1u) << "its checksum is right";
  EXPECT_EQ(events[0].attempts, 2);
  EXPECT_EQ(events[0].not_before_ms, 77);
  EXPECT_EQ(events[0].invocation.payload, "p");
}

TEST_F(StoreTest, BuriedEventMovesToTheDeadLetters) {
  auto store = open_store(io, folder.path());
  for (const char* id : {"a", "b"}) {
    ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record(id), done); }));
    ASSERT_TRUE(put(io, *store, event(id)));
    DeadLetter letter{.request_id = id,
                      .function = id,
                      .payload = "p",
                      .error_type = "T",
                      .error_message = "m",
                      .attempts = 3,
                      .accepted_ms = 1,
                      .failed_ms = 2};
    ASSERT_TRUE(wait_for(io, [&](auto done) { store->bury_event(letter, done); }));
  }
  EXPECT_TRUE(event_ids(*store).empty());

  auto list = [&](const std::string& function, std::size_t limit) {
    std::vector<std::string> ids;
    store->list_dead_letters(function, limit, [&](Result<std::vector<DeadLetter>> letters) {
      for (const DeadLetter& letter : letters.value()) ids.push_back(letter.request_id);
    });
    io.restart();
    io.run();
    return ids;
  };
  EXPECT_THAT(list("", 10), ElementsAre("b", "a"));  // newest first
  EXPECT_THAT(list("", 1), ElementsAre("b"));
  EXPECT_THAT(list("a", 10), ElementsAre("a"));
}

Result<Redriven> redrive(boost::asio::io_context& io, Store& store, const std::string& function, std::size_t limit) {
  Result<Redriven> redriven = fail(Errc::kUnavailable, "not called");
  store.redrive_dead_letters(function, limit, 77, [&](Result<Redriven> answer) { redriven = std::move(answer); });
  io.restart();
  io.run();
  return redriven;
}

TEST_F(StoreTest, DeadLettersBecomeEventsAgainAsTheyWereTheOldestFirst) {
  auto store = open_store(io, folder.path());
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record("f"), done); }));
  for (const char* id : {"1", "2", "3"}) {
    DeadLetter letter{.request_id = id,
                      .function = "f",
                      .payload = std::string("p\0", 2) + id,
                      .client_context = "c",
                      .trace_id = "Root=1",
                      .http = HttpPart{.method = "POST", .path = "/x"},
                      .error_type = "T",
                      .error_message = "m",
                      .attempts = 3};
    ASSERT_TRUE(wait_for(io, [&](auto done) { store->bury_event(letter, done); }));
  }
  EXPECT_TRUE(redrive(io, *store, "unknown", 10)->events.empty());
  const Result<Redriven> some = redrive(io, *store, "f", 2);
  ASSERT_EQ(some->events.size(), 2u);
  EXPECT_EQ(some->left, 1u);
  EXPECT_EQ(redrive(io, *store, "", 10)->events.size(), 1u);

  store.reset();
  store = open_store(io, folder.path());
  const auto events = store->load_events().value();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].invocation.request_id, "1");
  EXPECT_EQ(events[0].invocation.payload, std::string("p\0", 2) + "1");
  EXPECT_EQ(events[0].invocation.client_context, "c");
  EXPECT_EQ(events[0].invocation.trace_id, "Root=1");
  EXPECT_EQ(events[0].invocation.http->path, "/x");
  EXPECT_EQ(events[0].invocation.deadline_ms, std::nullopt);
  EXPECT_EQ(events[0].attempts, 0);
  EXPECT_EQ(events[0].accepted_ms, 77);
}

// The next function of that name may be another tenant's.
TEST_F(StoreTest, WithAFunctionGoWhatItsNameLeadsTo) {
  auto store = open_store(io, folder.path());
  const auto bury = [&](const char* id) {
    const DeadLetter letter{.request_id = id, .function = "f", .payload = "a secret of the first owner"};
    return wait_for(io, [&](auto done) { store->bury_event(letter, done); });
  };
  QueuedEvent waits = event("waits", 1);
  waits.invocation.function = "f";
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record("f"), done); }));
  ASSERT_TRUE(put(io, *store, waits));
  QueuedEvent other = event("of another", 2);
  other.invocation.function = "g";
  ASSERT_TRUE(put(io, *store, other));
  ASSERT_TRUE(bury("dead"));
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->delete_function("f", done); }));
  ASSERT_TRUE(bury("dies late"));
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->retry_event(waits, done); })) << "and does not come back";
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record("f"), done); }));

  EXPECT_TRUE(redrive(io, *store, "", 10)->events.empty());
  EXPECT_EQ(event_ids(*store), (std::vector<std::string>{"of another"}));
  EXPECT_EQ(store->damage().missing_events, 0u);
  store.reset();
  auto database = store::Database::open(folder / "state.db").value();
  bool has_letters = false;
  ASSERT_TRUE(database->query("SELECT 1 FROM dead_letters", [&](const store::Row&) { has_letters = true; }));
  EXPECT_FALSE(has_letters);
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

TEST_F(StoreTest, ProfilesOutliveTheNodeAndGoWithTheirFunction) {
  {
    auto store = open_store(io, folder.path());
    store->put_function(record("f"), {});
    store->put_function(record("g"), {});
    store->put_profile(profile_of("f", "c1", 1), {});
    store->put_profile(profile_of("g", "c1", 1), {});
    store->put_profile(profile_of("f", "c1", 5), {});  // in place of the first
    store->put_profile(profile_of("nobody", "c1", 1), {});
    store->delete_function("g", {});
  }
  const auto profiles = open_store(io, folder.path())->load_profiles();
  ASSERT_TRUE(profiles.has_value());
  EXPECT_EQ(*profiles, std::vector{profile_of("f", "c1", 5)});
}

TEST_F(StoreTest, OfOneFunctionTheOldestProfilesGo) {
  {
    auto store = open_store(io, folder.path());
    store->put_function(record("f"), {});
    for (int i = 0; i < 20; ++i) store->put_profile(profile_of("f", fmt::format("c{}", i), i), {});
  }
  const auto profiles = open_store(io, folder.path())->load_profiles();
  ASSERT_EQ(profiles->size(), Store::kMaxProfilesOfFunction);
  EXPECT_EQ(profiles->front().code_sha256, "c4");
}

// A database of the version before, as a released node left it.
TEST_F(StoreTest, ADatabaseFromBeforeProfilesIsMigrated) {
  {
    StateDamage found;
    auto database = store::open_state_database(folder.path(), found).value();
    ASSERT_TRUE(store::put_function(*database, folder.path(), record("f")));
    ASSERT_TRUE(database->run("DROP TABLE profiles"));
    ASSERT_TRUE(database->run("PRAGMA user_version = 9"));
  }
  auto store = open_store(io, folder.path());
  EXPECT_EQ(store->load_functions()->size(), 1u);
  store->put_profile(profile_of("f", "c1", 5), {});
  EXPECT_EQ(store->load_profiles()->size(), 1u);
}

TEST_F(StoreTest, ARedriveTakesNoMoreThanItsBytes) {
  auto store = open_store(io, folder.path());
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record("f"), done); }));
  for (const char* id : {"1", "2", "3"}) {
    DeadLetter letter{.request_id = id, .function = "f", .payload = std::string(Store::kMaxLetterBytes / 2, 'x')};
    ASSERT_TRUE(wait_for(io, [&](auto done) { store->bury_event(letter, done); }));
  }
  EXPECT_EQ(redrive(io, *store, "f", 10)->events.size(), 2u);
  EXPECT_EQ(redrive(io, *store, "f", 10)->events.size(), 1u);
}

TEST_F(StoreTest, HowOftenEventsAreTriedIsKeptUntilItsFunctionIsDeleted) {
  auto store = open_store(io, folder.path());
  const auto put_config = [&](const std::string& function, EventInvokeConfig config) {
    return wait_for(io, [&](auto done) { store->put_event_config(function, config, done); });
  };
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record("f"), done); }));
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record("g"), done); }));
  const EventInvokeConfig config{.retries = 0, .last_modified_ms = 5};
  ASSERT_TRUE(put_config("f", {.age_seconds = 60}));
  ASSERT_TRUE(put_config("f", config));
  ASSERT_TRUE(put_config("g", config));
  ASSERT_TRUE(put_config("deleted meanwhile", config));
  store.reset();
  store = open_store(io, folder.path());
  EXPECT_THAT(store->load_event_configs().value(), ElementsAre(testing::Pair("f", config), testing::Pair("g", config)));
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->delete_event_config("g", done); }));
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->delete_function("f", done); }));
  EXPECT_TRUE(store->load_event_configs()->empty());
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

TEST_F(StoreTest, AListOfDeadLettersHasABoundInBytes) {
  auto store = open_store(io, folder.path());
  ASSERT_TRUE(wait_for(io, [&](auto done) { store->put_function(record("f"), done); }));
  for (const char* id : {"1", "2", "3"}) {
    DeadLetter letter{.request_id = id, .function = "f", .payload = std::string(Store::kMaxLetterBytes / 2, 'x')};
    ASSERT_TRUE(wait_for(io, [&](auto done) { store->bury_event(letter, done); }));
  }
  std::vector<std::string> ids;
  store->list_dead_letters("f", 10, [&](Result<std::vector<DeadLetter>> letters) {
    for (const DeadLetter& letter : letters.value()) ids.push_back(letter.request_id);
  });
  io.restart();
  io.run();
  EXPECT_THAT(ids, ElementsAre("3", "2"));
}

TEST_F(StoreTest, DestructionCommitsWhatIsPending) {
  auto store = open_store(io, folder.path());
  for (int i = 0; i < 100; ++i) store->put_event(event(std::to_string(i)), {});
  store.reset();
  EXPECT_EQ(event_ids(*open_store(io, folder.path())).size(), 100u);
}

TEST_F(StoreTest, AFolderThatItMakesIsClosedToOthers) {
  const mode_t before = ::umask(0);
  open_store(io, folder / "state");
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat((folder / "state").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u) << "payloads are private";
}

TEST_F(StoreTest, SecondNodeOnOneFolderIsRefusedByName) {
  auto store = open_store(io, folder.path());
  Result<std::unique_ptr<Store>> second = Store::open(io, folder.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(getpid())));
  EXPECT_THAT(second.error().message, HasSubstr(folder.path()));
  store.reset();
  EXPECT_TRUE(Store::open(io, folder.path()));
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

// Writes events for ever and reports each acknowledged one as a line.
[[noreturn]] void write_until_killed(const std::string& folder, int report) {
  boost::asio::io_context io;
  auto store = open_store(io, folder);
  int next = 0;
  std::function<void()> put_next = [&] {
    std::string id = std::to_string(next++);
    store->put_event(event(id), [&, id](const Status& status) {
      std::string line = id + "\n";
      if (status && write(report, line.data(), line.size()) < 0) _exit(1);
      put_next();
    });
  };
  for (int i = 0; i < 32; ++i) put_next();
  io.run();
  _exit(1);
}

TEST_F(StoreTest, AcknowledgedEventsSurviveSigkill) {
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  pid_t child = fork();
  if (child == 0) write_until_killed(folder.path(), report[1]);
  close(report[1]);

  FILE* lines = fdopen(report[0], "r");
  std::set<std::string> acknowledged;
  char line[32];
  while (acknowledged.size() < 200 && std::fgets(line, sizeof(line), lines)) {
    acknowledged.emplace(line, std::strcspn(line, "\n"));
  }
  kill(child, SIGKILL);
  while (std::fgets(line, sizeof(line), lines)) acknowledged.emplace(line, std::strcspn(line, "\n"));
  std::fclose(lines);
  waitpid(child, nullptr, 0);

  ASSERT_GE(acknowledged.size(), 200u);
  auto store = open_store(io, folder.path());  // the kernel released the dead process's lock
  std::vector<std::string> ids = event_ids(*store);
  std::set<std::string> kept(ids.begin(), ids.end());
  for (const std::string& id : acknowledged) EXPECT_TRUE(kept.contains(id)) << id;
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
