// What every engine of Store does alike. A test program of an engine includes this once and says how it is opened:
//
//   INSTANTIATE_TEST_SUITE_P(SQLite, StoreConformance, testing::Values(engine), name_of_engine);
#pragma once

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "store/store.h"
#include "store/test_folder.h"

namespace fairlead {

struct StoreEngine {
  std::string name;
  std::function<Result<std::unique_ptr<Store>>(boost::asio::io_context&, const std::string& folder)> open;
  std::function<std::string()> prepare = [] { return std::string(); };  // before each test; says why it cannot be
};
inline std::ostream& operator<<(std::ostream& out, const StoreEngine& engine) {
  return out << engine.name;
}
inline std::string name_of_engine(const testing::TestParamInfo<StoreEngine>& info) {
  return info.param.name;
}

class StoreConformance : public testing::TestWithParam<StoreEngine> {
 protected:
  void SetUp() override {
    if (const std::string why = GetParam().prepare(); !why.empty()) GTEST_SKIP() << why;
  }

  static QueuedEvent event_named(const std::string& id, std::int64_t accepted_ms = 0) {
    return {.invocation = {.request_id = id, .function = "f", .payload = "p", .trace_id = "Root=" + id},
            .accepted_ms = accepted_ms};
  }
  static FunctionRecord function_named(const std::string& name) {
    FunctionRecord function;
    function.name = name;
    return function;
  }
  FunctionRecord version_of_f(std::uint64_t number, const std::string& name = "f") const {
    FunctionRecord record{.name = name};
    record.config.environment = {{"MODE", std::to_string(number)}};
    record.config.tags = {{"gpu:memory-mib", "64"}};
    record.config.description = "the one";
    record.code_sha256 = "c2hh";
    record.code_path = folder / "code/abc";
    record.revision_id = "r" + std::to_string(number);
    record.version = number;
    return record;
  }
  static FunctionProfile profile_of(const std::string& function, const std::string& code, std::int64_t measured_ms) {
    FunctionProfile profile{.function = function, .code_sha256 = code, .device = "V100"};
    profile.trials = {{.rate_per_s = 10, .error = 0.02}};
    profile.work_ms = 100;
    profile.measured_ms = measured_ms;
    return profile;
  }

  std::unique_ptr<Store> open(const std::string& path) {
    auto store = GetParam().open(io, path);
    FL_CHECK(store.has_value(), "{}", store.error().message);
    return *std::move(store);
  }
  // Runs one operation to its callback.
  template <typename Start>
  Status wait_for(Start start) {
    Status result = fail(Errc::kInternal, "the callback did not run");
    start([&result](Status status) { result = std::move(status); });
    run();
    return result;
  }
  void run() {
    io.restart();
    io.run();
  }
  Status put(Store& store, QueuedEvent value) {
    return wait_for([&](Store::Done done) { store.put_event(std::move(value), std::move(done)); });
  }
  static std::vector<std::string> event_ids(Store& store) {
    std::vector<std::string> ids;
    const std::vector<QueuedEvent> events = store.load_events().value();
    for (const QueuedEvent& e : events) ids.push_back(e.invocation.request_id);
    return ids;
  }
  std::vector<std::string> letters(Store& store, const std::string& function, std::size_t limit) {
    std::vector<std::string> ids;
    store.list_dead_letters(function, limit, [&](Result<std::vector<DeadLetter>> found) {
      for (const DeadLetter& letter : found.value()) ids.push_back(letter.request_id);
    });
    run();
    return ids;
  }
  Result<Redriven> redrive(Store& store, const std::string& function, std::size_t limit) {
    Result<Redriven> redriven = fail(Errc::kUnavailable, "not called");
    store.redrive_dead_letters(function, limit, 77, [&](Result<Redriven> answer) { redriven = std::move(answer); });
    run();
    return redriven;
  }
  // Writes events for ever and reports each acknowledged one as a line.
  [[noreturn]] void write_until_killed(int report) {
    boost::asio::io_context own;
    auto store = GetParam().open(own, folder.path()).value();
    int next = 0;
    std::function<void()> put_next = [&] {
      std::string id = std::to_string(next++);
      store->put_event(event_named(id), [&, id](const Status& status) {
        std::string line = id + "\n";
        if (status && write(report, line.data(), line.size()) < 0) _exit(1);
        put_next();
      });
    };
    for (int i = 0; i < 32; ++i) put_next();
    own.run();
    _exit(1);
  }

  store::TestFolder folder;
  boost::asio::io_context io;
};

TEST_P(StoreConformance, FunctionsComeBackAfterReopening) {
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
    auto store = open(folder.path());
    ASSERT_TRUE(wait_for([&](auto done) { store->put_function(record, done); }));
  }
  auto functions = open(folder.path())->load_functions().value();
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

TEST_P(StoreConformance, AnImageComesBackWhole) {
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
    auto store = open(folder.path());
    ASSERT_TRUE(wait_for([&](auto done) { store->put_function(record, done); }));
  }
  const auto functions = open(folder.path())->load_functions().value();
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0].config, record.config);
  EXPECT_EQ(functions[0].image, record.image);
}

TEST_P(StoreConformance, CodePathsFollowAMovedStateFolder) {
  FunctionRecord record;
  record.name = "f";
  record.code_path = folder / "a/code/abc";
  {
    auto store = open(folder / "a");
    ASSERT_TRUE(wait_for([&](auto done) { store->put_function(record, done); }));
  }
  std::filesystem::rename(folder / "a", folder / "b");
  EXPECT_EQ(open(folder / "b")->load_functions().value()[0].code_path, folder / "b/code/abc");
}

TEST_P(StoreConformance, DeletedFunctionIsGoneAndUtf8IsRequired) {
  auto store = open(folder.path());
  FunctionRecord record;
  record.name = "f";
  ASSERT_TRUE(wait_for([&](auto done) { store->put_function(record, done); }));
  ASSERT_TRUE(wait_for([&](auto done) { store->delete_function("f", done); }));
  EXPECT_TRUE(store->load_functions().value().empty());

  record.config.environment = {{"KEY", "\xff"}};
  Status status = wait_for([&](auto done) { store->put_function(record, done); });
  EXPECT_EQ(status.error().code, Errc::kInvalidArgument);
}

TEST_P(StoreConformance, EventsComeBackInOrderOfAcceptanceWithBinaryPayloads) {
  const std::string binary("\0\xff\n\0", 4);
  {
    auto store = open(folder.path());
    QueuedEvent second = event_named("b", 2);
    second.invocation.payload = binary;
    second.not_before_ms = 77;
    second.invocation.deadline_ms = 99;
    second.invocation.http = {.method = "PUT", .path = "/a?b=c", .headers = {{"A", "x: y"}, {"B", ""}, {"A", "\xff"}}};
    ASSERT_TRUE(put(*store, second));
    ASSERT_TRUE(put(*store, event_named("a", 1)));
    ASSERT_TRUE(put(*store, event_named("c", 3)));
    second.attempts = 2;  // replaced in place
    ASSERT_TRUE(put(*store, second));
    ASSERT_TRUE(wait_for([&](auto done) { store->finish_event("c", done); }));
  }
  auto events = open(folder.path())->load_events().value();
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

TEST_P(StoreConformance, ARetryChangesAttemptsAndBackOffAndNothingElse) {
  {
    auto store = open(folder.path());
    QueuedEvent held = event_named("a", 1);
    ASSERT_TRUE(put(*store, held));
    held.attempts = 2;
    held.not_before_ms = 77;
    ASSERT_TRUE(wait_for([&](auto done) { store->retry_event(held, done); }));
  }
  auto store = open(folder.path());
  const std::vector<QueuedEvent> events = store->load_events().value();
  ASSERT_EQ(events.size(), 1u) << "its checksum is right";
  EXPECT_EQ(events[0].attempts, 2);
  EXPECT_EQ(events[0].not_before_ms, 77);
  EXPECT_EQ(events[0].invocation.payload, "p");
}

TEST_P(StoreConformance, BuriedEventMovesToTheDeadLetters) {
  auto store = open(folder.path());
  for (const char* id : {"a", "b"}) {
    ASSERT_TRUE(wait_for([&](auto done) { store->put_function(function_named(id), done); }));
    ASSERT_TRUE(put(*store, event_named(id)));
    DeadLetter letter{.request_id = id,
                      .function = id,
                      .payload = "p",
                      .error_type = "T",
                      .error_message = "m",
                      .attempts = 3,
                      .accepted_ms = 1,
                      .failed_ms = 2};
    ASSERT_TRUE(wait_for([&](auto done) { store->bury_event(letter, done); }));
  }
  EXPECT_TRUE(event_ids(*store).empty());

  const auto list = [&](const std::string& function, std::size_t limit) { return letters(*store, function, limit); };
  EXPECT_THAT(list("", 10), testing::ElementsAre("b", "a"));  // newest first
  EXPECT_THAT(list("", 1), testing::ElementsAre("b"));
  EXPECT_THAT(list("a", 10), testing::ElementsAre("a"));
}

TEST_P(StoreConformance, DeadLettersBecomeEventsAgainAsTheyWereTheOldestFirst) {
  auto store = open(folder.path());
  ASSERT_TRUE(wait_for([&](auto done) { store->put_function(function_named("f"), done); }));
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
    ASSERT_TRUE(wait_for([&](auto done) { store->bury_event(letter, done); }));
  }
  EXPECT_TRUE(redrive(*store, "unknown", 10)->events.empty());
  const Result<Redriven> some = redrive(*store, "f", 2);
  ASSERT_EQ(some->events.size(), 2u);
  EXPECT_EQ(some->left, 1u);
  EXPECT_EQ(redrive(*store, "", 10)->events.size(), 1u);

  store.reset();
  store = open(folder.path());
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
TEST_P(StoreConformance, WithAFunctionGoWhatItsNameLeadsTo) {
  auto store = open(folder.path());
  const auto bury = [&](const char* id) {
    const DeadLetter letter{.request_id = id, .function = "f", .payload = "a secret of the first owner"};
    return wait_for([&](auto done) { store->bury_event(letter, done); });
  };
  QueuedEvent waits = event_named("waits", 1);
  waits.invocation.function = "f";
  ASSERT_TRUE(wait_for([&](auto done) { store->put_function(function_named("f"), done); }));
  ASSERT_TRUE(put(*store, waits));
  QueuedEvent other = event_named("of another", 2);
  other.invocation.function = "g";
  ASSERT_TRUE(put(*store, other));
  ASSERT_TRUE(bury("dead"));
  ASSERT_TRUE(wait_for([&](auto done) { store->delete_function("f", done); }));
  ASSERT_TRUE(bury("dies late"));
  ASSERT_TRUE(wait_for([&](auto done) { store->retry_event(waits, done); })) << "and does not come back";
  ASSERT_TRUE(wait_for([&](auto done) { store->put_function(function_named("f"), done); }));

  EXPECT_TRUE(redrive(*store, "", 10)->events.empty());
  EXPECT_EQ(event_ids(*store), (std::vector<std::string>{"of another"}));
  EXPECT_EQ(store->damage().missing_events, 0u);
  EXPECT_TRUE(letters(*store, "", 10).empty());
}

TEST_P(StoreConformance, ProfilesOutliveTheNodeAndGoWithTheirFunction) {
  {
    auto store = open(folder.path());
    store->put_function(function_named("f"), {});
    store->put_function(function_named("g"), {});
    store->put_profile(profile_of("f", "c1", 1), {});
    store->put_profile(profile_of("g", "c1", 1), {});
    store->put_profile(profile_of("f", "c1", 5), {});  // in place of the first
    store->put_profile(profile_of("nobody", "c1", 1), {});
    store->delete_function("g", {});
  }
  const auto profiles = open(folder.path())->load_profiles();
  ASSERT_TRUE(profiles.has_value());
  EXPECT_EQ(*profiles, std::vector{profile_of("f", "c1", 5)});
}

TEST_P(StoreConformance, OfOneFunctionTheOldestProfilesGo) {
  {
    auto store = open(folder.path());
    store->put_function(function_named("f"), {});
    for (int i = 0; i < 20; ++i) store->put_profile(profile_of("f", fmt::format("c{}", i), i), {});
  }
  const auto profiles = open(folder.path())->load_profiles();
  ASSERT_EQ(profiles->size(), Store::kMaxProfilesOfFunction);
  EXPECT_EQ(profiles->front().code_sha256, "c4");
}

TEST_P(StoreConformance, ARedriveTakesNoMoreThanItsBytes) {
  auto store = open(folder.path());
  ASSERT_TRUE(wait_for([&](auto done) { store->put_function(function_named("f"), done); }));
  for (const char* id : {"1", "2", "3"}) {
    DeadLetter letter{.request_id = id, .function = "f", .payload = std::string(Store::kMaxLetterBytes / 2, 'x')};
    ASSERT_TRUE(wait_for([&](auto done) { store->bury_event(letter, done); }));
  }
  EXPECT_EQ(redrive(*store, "f", 10)->events.size(), 2u);
  EXPECT_EQ(redrive(*store, "f", 10)->events.size(), 1u);
}

TEST_P(StoreConformance, HowOftenEventsAreTriedIsKeptUntilItsFunctionIsDeleted) {
  auto store = open(folder.path());
  const auto put_config = [&](const std::string& function, EventInvokeConfig config) {
    return wait_for([&](auto done) { store->put_event_config(function, config, done); });
  };
  ASSERT_TRUE(wait_for([&](auto done) { store->put_function(function_named("f"), done); }));
  ASSERT_TRUE(wait_for([&](auto done) { store->put_function(function_named("g"), done); }));
  const EventInvokeConfig config{.retries = 0, .last_modified_ms = 5};
  ASSERT_TRUE(put_config("f", {.age_seconds = 60}));
  ASSERT_TRUE(put_config("f", config));
  ASSERT_TRUE(put_config("g", config));
  ASSERT_TRUE(put_config("deleted meanwhile", config));
  store.reset();
  store = open(folder.path());
  EXPECT_THAT(store->load_event_configs().value(),
              testing::ElementsAre(testing::Pair("f", config), testing::Pair("g", config)));
  ASSERT_TRUE(wait_for([&](auto done) { store->delete_event_config("g", done); }));
  ASSERT_TRUE(wait_for([&](auto done) { store->delete_function("f", done); }));
  EXPECT_TRUE(store->load_event_configs()->empty());
}

TEST_P(StoreConformance, AListOfDeadLettersHasABoundInBytes) {
  auto store = open(folder.path());
  ASSERT_TRUE(wait_for([&](auto done) { store->put_function(function_named("f"), done); }));
  for (const char* id : {"1", "2", "3"}) {
    DeadLetter letter{.request_id = id, .function = "f", .payload = std::string(Store::kMaxLetterBytes / 2, 'x')};
    ASSERT_TRUE(wait_for([&](auto done) { store->bury_event(letter, done); }));
  }
  EXPECT_THAT(letters(*store, "f", 10), testing::ElementsAre("3", "2"));
}

// However many of them one transaction has.
TEST_P(StoreConformance, WritesKeepTheOrderInWhichTheyWereAskedFor) {
  auto store = open(folder.path());
  std::vector<std::string> expected, asked, told;
  const auto tell = [&](const std::string& what) {
    asked.push_back(what);
    return [&told, what](const Status&) { told.push_back(what); };
  };
  for (int i = 0; i < 200; ++i) {
    const std::string id = "e" + std::to_string(i);
    store->put_event(event_named(id), tell(id));
    if (i % 3 == 0) store->finish_event(id, tell("end of " + id));
    if (i % 3 != 0) expected.push_back(id);
    QueuedEvent again = event_named(id);
    again.attempts = 2;
    if (i % 5 == 0) store->retry_event(again, tell("retry of " + id));
  }
  run();
  EXPECT_EQ(told, asked);
  const std::vector<QueuedEvent> events = store->load_events().value();
  std::vector<std::string> ids;
  for (const QueuedEvent& event : events) {
    const std::string& id = ids.emplace_back(event.invocation.request_id);
    EXPECT_EQ(event.attempts, std::stoi(id.substr(1)) % 5 == 0 ? 2 : 0) << id;
  }
  EXPECT_EQ(ids, expected);
}

TEST_P(StoreConformance, DestructionCommitsWhatIsPending) {
  auto store = open(folder.path());
  for (int i = 0; i < 100; ++i) store->put_event(event_named(std::to_string(i)), {});
  store.reset();
  EXPECT_EQ(event_ids(*open(folder.path())).size(), 100u);
}

TEST_P(StoreConformance, AFolderThatItMakesIsClosedToOthers) {
  const mode_t before = ::umask(0);
  open(folder / "state");
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat((folder / "state").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u) << "payloads are private";
}

TEST_P(StoreConformance, SecondNodeOnOneFolderIsRefusedByName) {
  auto store = open(folder.path());
  Result<std::unique_ptr<Store>> second = GetParam().open(io, folder.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kConflict);
  EXPECT_THAT(second.error().message, testing::HasSubstr(std::to_string(getpid())));
  EXPECT_THAT(second.error().message, testing::HasSubstr(folder.path()));
  store.reset();
  EXPECT_TRUE(GetParam().open(io, folder.path()));
}

TEST_P(StoreConformance, AcknowledgedEventsSurviveSigkill) {
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  pid_t child = fork();
  if (child == 0) write_until_killed(report[1]);
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
  auto store = open(folder.path());  // the kernel released the dead process's lock
  std::vector<std::string> ids = event_ids(*store);
  std::set<std::string> kept(ids.begin(), ids.end());
  for (const std::string& id : acknowledged) EXPECT_TRUE(kept.contains(id)) << id;
}

TEST_P(StoreConformance, VersionsAndAliasesComeBack) {
  {
    auto store = open(folder.path());
    store->put_function({.name = "f"}, {});
    store->put_version(version_of_f(1), {});
    store->put_version(version_of_f(2), {});
    store->put_alias("f", {.name = "live", .version = 1, .description = "d", .weights = {{2, 0.1}}, .revision_id = "r"},
                     {});
    store->put_alias("f", {.name = "old", .version = 1, .description = "", .weights = {}, .revision_id = "r"}, {});
    store->put_alias("f", {.name = "old", .version = 0, .description = "", .weights = {}, .revision_id = "s"}, {});
  }
  const auto published = open(folder.path())->load_published();
  ASSERT_TRUE(published) << published.error().message;
  ASSERT_EQ(published->versions.size(), 2u);
  const FunctionRecord& second = published->versions[1];
  EXPECT_EQ(second.version, 2u);
  EXPECT_EQ(second.config, version_of_f(2).config);
  EXPECT_EQ(second.code_path, folder / "code/abc");
  EXPECT_EQ(second.revision_id, "r2");
  EXPECT_EQ(published->last_numbers.at("f"), 2u);
  ASSERT_EQ(published->aliases.at("f").size(), 2u);
  EXPECT_EQ(
      published->aliases.at("f")[0],
      (FunctionAlias{.name = "live", .version = 1, .description = "d", .weights = {{2, 0.1}}, .revision_id = "r"}));
  EXPECT_EQ(published->aliases.at("f")[1].revision_id, "s");
}

TEST_P(StoreConformance, ANumberIsRememberedWhenItsVersionHasGone) {
  {
    auto store = open(folder.path());
    store->put_function({.name = "f"}, {});
    store->put_version(version_of_f(1), {});
    store->put_version(version_of_f(2), {});
    store->delete_version("f", 2, {});
  }
  const auto published = open(folder.path())->load_published();
  ASSERT_EQ(published->versions.size(), 1u);
  EXPECT_EQ(published->last_numbers.at("f"), 2u);
}

TEST_P(StoreConformance, TheyGoWithTheirFunctionAndAreOfNoneThatIsNotThere) {
  {
    auto store = open(folder.path());
    for (const char* name : {"f", "g"}) {
      store->put_function({.name = name}, {});
      store->put_version(version_of_f(1, name), {});
      store->put_alias(name, {.name = "live", .version = 1}, {});
    }
    store->put_version(version_of_f(1, "nobody"), {});
    store->put_alias("nobody", {.name = "live", .version = 1}, {});
    store->delete_function("f", {});
    store->delete_alias("g", "live", {});
  }
  const auto published = open(folder.path())->load_published();
  ASSERT_EQ(published->versions.size(), 1u);
  EXPECT_EQ(published->versions[0].name, "g");
  EXPECT_EQ(published->last_numbers.size(), 1u);
  EXPECT_TRUE(published->aliases.empty());
}

TEST_P(StoreConformance, EventsAndDeadLettersKeepTheirVersion) {
  {
    auto store = open(folder.path());
    store->put_function({.name = "f"}, {});
    for (const char* id : {"waits", "fails"}) {
      QueuedEvent event;
      event.invocation.request_id = id;
      event.invocation.function = "f";
      event.invocation.version = 7;
      store->put_event(event, {});
    }
    DeadLetter letter{.request_id = "fails", .function = "f"};
    letter.version = 7;
    store->bury_event(letter, {});
  }
  auto store = open(folder.path());
  auto events = store->load_events();
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->at(0).invocation.version, 7u);
  EXPECT_EQ(store->damage().damaged_events, 0u);
  std::optional<Redriven> redriven;
  store->redrive_dead_letters("f", 10, 1, [&](Result<Redriven> made) { redriven = *std::move(made); });
  io.run();
  ASSERT_EQ(redriven->events.size(), 1u);
  EXPECT_EQ(redriven->events[0].invocation.version, 7u);
}

}  // namespace fairlead
