#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>

#include "store/postgres/records.h"
#include "store/postgres/testing/server.h"
#include "store/shared_store.h"
#include "store/testing/store_conformance.h"

namespace fairlead {
namespace {

using postgres::Rows;
using postgres::TestServer;

// One server for all tests of this program; each finds it empty.
TestServer& server() {
  static TestServer server;
  return server;
}

std::string empty_server() {
  if (const std::string obstacle = TestServer::obstacle(); !obstacle.empty()) return obstacle;
  server().query("DROP SCHEMA IF EXISTS fairlead CASCADE");
  return "";
}

Result<std::unique_ptr<SharedStore>> open_shared(boost::asio::io_context& io, const std::string& folder,
                                                 const std::string& url = server().url()) {
  return open_postgres_store(io, folder, {.url = url, .password_file = {}, .node_name = "test"});
}

const StoreEngine kPostgres{
    .name = "PostgreSQL",
    .open = [](boost::asio::io_context& io, const std::string& folder) -> Result<std::unique_ptr<Store>> {
      auto store = open_shared(io, folder);
      if (!store) return fail(store.error());
      return std::unique_ptr<Store>(*std::move(store));
    },
    .prepare = empty_server};
INSTANTIATE_TEST_SUITE_P(Engines, StoreConformance, testing::Values(kPostgres), name_of_engine);

QueuedEvent event_of(const std::string& function, const std::string& id) {
  QueuedEvent event;
  event.invocation.request_id = id;
  event.invocation.function = function;
  event.invocation.payload = "p";
  return event;
}

// Nodes of one cluster, each with a folder, an io_context and a store of its own.
struct TestNode {
  explicit TestNode(const std::string& folder, const std::string& url = server().url()) : path(folder) { open(url); }

  void open(const std::string& url) {
    auto opened = open_shared(io, path, url);
    FL_CHECK(opened.has_value(), "{}", opened.error().message);
    store = *std::move(opened);
  }
  void watch() {
    const auto loaded = store->load_functions();
    ASSERT_TRUE(loaded);
    for (const FunctionRecord& record : *loaded) functions.push_back(record.name);
    store->watch({.changed =
                      [this](std::vector<FunctionChange> all) {
                        for (FunctionChange& change : all) changes.push_back(std::move(change));
                      },
                  .lease_lost = [this] { ++leases_lost; },
                  .claimable = [this] { is_claimable = true; },
                  .documents = [this](SharedDocuments all) { documents = std::move(all); }});
  }
  // Runs what comes until the condition holds, at most so long.
  bool until(const std::function<bool()>& condition, std::chrono::seconds most = std::chrono::seconds(30)) {
    const auto end = std::chrono::steady_clock::now() + most;
    while (!condition() && std::chrono::steady_clock::now() < end) {
      io.restart();
      const auto guard = boost::asio::make_work_guard(io);
      io.run_one_for(std::chrono::milliseconds(20));
    }
    return condition();
  }
  Status wait_for(const std::function<void(Store::Done)>& start) {
    std::optional<Status> result;
    start([&](Status status) { result = std::move(status); });
    until([&] { return result.has_value(); });
    return result ? *result : Status(fail(Errc::kDeadlineExceeded, "no answer"));
  }
  Status put_function(FunctionRecord record) {
    return wait_for([&](auto done) { store->put_function(std::move(record), done); });
  }
  Status put_event(QueuedEvent event) {
    return wait_for([&](auto done) { store->put_event(std::move(event), done); });
  }
  std::vector<std::string> claim(std::vector<std::string> of, std::size_t limit = 64) {
    std::optional<Result<std::vector<QueuedEvent>>> claimed;
    store->claim_events(std::move(of), limit, [&](auto events) { claimed = std::move(events); });
    until([&] { return claimed.has_value(); });
    std::vector<std::string> ids;
    for (const QueuedEvent& one : claimed->value()) ids.push_back(one.invocation.request_id);
    return ids;
  }

  const std::string path;
  boost::asio::io_context io;
  std::vector<std::string> functions;  // at the start
  std::vector<FunctionChange> changes;
  int leases_lost = 0;
  bool is_claimable = false;
  SharedDocuments documents;  // as it was last told
  std::unique_ptr<SharedStore> store;
};

struct PostgresStoreTest : testing::Test {
  void SetUp() override {
    if (const std::string why = empty_server(); !why.empty()) GTEST_SKIP() << why;
  }
  store::TestFolder folder;
};

// A process that died: its connections are gone, and nobody said goodbye.
void put_and_die(const std::string& folder, int events) {
  const pid_t child = fork();
  if (child == 0) {
    TestNode node(folder);
    bool written = static_cast<bool>(node.put_function({.name = "f"}));
    for (int i = 0; i < events; ++i) written = written && node.put_event(event_of("f", "e" + std::to_string(i)));
    if (!written) _exit(1);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST_F(PostgresStoreTest, EventsOfANodeThatDiedAreClaimedOnceItsLeaseHasRunOut) {
  put_and_die(folder / "a", 100);
  const auto died = std::chrono::steady_clock::now();
  TestNode b(folder / "b"), c(folder / "c");
  b.watch();
  c.watch();
  EXPECT_TRUE(b.claim({"f"}).empty()) << "its lease has not run out";
  ASSERT_TRUE(b.until([&] { return b.is_claimable; }, std::chrono::seconds(8)));
  EXPECT_GE(std::chrono::steady_clock::now() - died, std::chrono::milliseconds(4500));
  EXPECT_TRUE(b.claim({"another"}).empty()) << "of functions that it has";
  std::set<std::string> claimed;
  std::size_t of_both = 0;
  for (TestNode* const node : {&b, &c, &b, &c}) {
    for (const std::string& id : node->claim({"f", "g"}, 40)) {
      claimed.insert(id);
      ++of_both;
    }
  }
  EXPECT_EQ(claimed.size(), 100u);
  EXPECT_EQ(of_both, 100u) << "none twice";
}

TEST_F(PostgresStoreTest, ANodeThatStopsOrIsStartedAgainKeepsNobodyWaiting) {
  {
    TestNode a(folder / "a");
    ASSERT_TRUE(a.put_function({.name = "f"}));
    ASSERT_TRUE(a.put_event(event_of("f", "left by a stop")));
  }
  TestNode b(folder / "b");
  EXPECT_EQ(b.claim({"f"}), (std::vector<std::string>{"left by a stop"}));
  put_and_die(folder / "a", 1);
  TestNode a(folder / "a");
  EXPECT_EQ(b.claim({"f"}), (std::vector<std::string>{"e0"})) << "its next start ends the epoch of the one before";
}

TEST_F(PostgresStoreTest, ANodeWhoseEpochWasEndedBeginsAnotherAndClaimsWhatIsLeft) {
  TestNode a(folder / "a");
  a.watch();
  ASSERT_TRUE(a.put_function({.name = "f"}));
  ASSERT_TRUE(a.put_event(event_of("f", "e")));
  EXPECT_TRUE(a.store->may_start_events());
  server().query("UPDATE fairlead.nodes SET ended = true");
  ASSERT_TRUE(a.until([&] { return a.leases_lost > 0 && a.is_claimable; }));
  std::vector<std::string> claimed;  // nothing until it has the next one
  ASSERT_TRUE(a.until([&] {
    if (claimed.empty()) claimed = a.claim({"f"});
    return !claimed.empty();
  }));
  EXPECT_EQ(claimed, (std::vector<std::string>{"e"}));
  EXPECT_TRUE(a.put_event(event_of("f", "under the new one")));
}

// What it ran meanwhile counts; what it would try again or bury is another's by now.
TEST_F(PostgresStoreTest, WhoLostAnEventMayEndItAndNothingElse) {
  TestNode a(folder / "a");
  ASSERT_TRUE(a.put_function({.name = "f"}));
  for (const char* id : {"buried", "retried", "run"}) ASSERT_TRUE(a.put_event(event_of("f", id)));
  server().query("UPDATE fairlead.nodes SET ended = true");
  TestNode b(folder / "b");
  EXPECT_EQ(b.claim({"f"}).size(), 3u);
  QueuedEvent retried = event_of("f", "retried");
  retried.attempts = 9;
  ASSERT_TRUE(a.wait_for([&](auto done) { a.store->retry_event(retried, done); }));
  ASSERT_TRUE(a.wait_for([&](auto done) { a.store->bury_event({.request_id = "buried", .function = "f"}, done); }));
  ASSERT_TRUE(a.wait_for([&](auto done) { a.store->finish_event("run", done); }));
  EXPECT_EQ(server().query("SELECT count(*) FROM fairlead.events WHERE attempts = 0").integer(0, 0), 2);
  EXPECT_EQ(server().query("SELECT count(*) FROM fairlead.dead_letters").integer(0, 0), 0);
  EXPECT_FALSE(a.put_event(event_of("f", "late"))) << "it would be nobody's to run";
}

TEST_F(PostgresStoreTest, ChangesOfFunctionsAreSeenByAllNodes) {
  TestNode a(folder / "a"), b(folder / "b");
  b.watch();
  FunctionRecord record{.name = "f"};
  record.code_path = folder / "a/code/abc";
  record.config.environment = {{"A", "1"}};
  ASSERT_TRUE(a.put_function(record));
  ASSERT_TRUE(b.until([&] { return b.changes.size() == 1; }, std::chrono::seconds(5)));
  EXPECT_EQ(b.changes[0].record->config, record.config);
  EXPECT_EQ(b.changes[0].record->code_path, folder / "b/code/abc") << "in its own folder";

  record.version = 1;
  ASSERT_TRUE(a.wait_for([&](auto done) { a.store->put_version(record, done); }));
  ASSERT_TRUE(a.wait_for([&](auto done) {
    a.store->put_alias("f", {.name = "live", .version = 1, .description = "", .weights = {}, .revision_id = ""}, done);
  }));
  ASSERT_TRUE(a.wait_for([&](auto done) { a.store->put_event_config("f", {.retries = 1}, done); }));
  ASSERT_TRUE(b.until([&] { return !b.changes.empty() && b.changes.back().event_config.has_value(); },
                      std::chrono::seconds(5)));
  EXPECT_EQ(b.changes.back().published.versions.size(), 1u);
  EXPECT_EQ(b.changes.back().published.aliases.at("f").size(), 1u);

  ASSERT_TRUE(a.wait_for([&](auto done) { a.store->delete_function("f", done); }));
  ASSERT_TRUE(b.until([&] { return !b.changes.back().record.has_value(); }, std::chrono::seconds(5)));
  EXPECT_FALSE(a.put_event(event_of("f", "late"))) << "of a deleted function nothing is accepted";
}

TEST_F(PostgresStoreTest, ANameIsItsTenantsWhicheverNodeOthersDeployAt) {
  TestNode a(folder / "a"), b(folder / "b");
  FunctionRecord ours{.name = "f"}, theirs{.name = "f"};
  ours.config.tags = {{"gpu:tenant", "acme"}};
  theirs.config.tags = {{"gpu:tenant", "thief"}};
  ASSERT_TRUE(a.put_function(ours));
  const Status stolen = b.put_function(theirs);
  ASSERT_FALSE(stolen);
  EXPECT_EQ(stolen.error().code, Errc::kConflict);
  ASSERT_TRUE(a.wait_for([&](auto done) { a.store->delete_function("f", done); }));
  EXPECT_TRUE(b.put_function(theirs));
}

TEST_F(PostgresStoreTest, CodeIsFetchedAsItWasStored) {
  TestNode a(folder / "a"), b(folder / "b");
  std::string zip(3 << 20, 'z');
  zip[1 << 20] = '\0';
  zip += "end";
  ASSERT_TRUE(a.store->put_code("d1", zip));
  ASSERT_TRUE(a.store->put_code("d1", zip)) << "again is the same";
  EXPECT_EQ(b.store->fetch_code("d1").value(), zip);
  EXPECT_EQ(b.store->fetch_code("unknown").error().code, Errc::kNotFound);
}

TEST_F(PostgresStoreTest, DocumentsAreSeenByAllNodesAsTheyAre) {
  TestNode a(folder / "a"), b(folder / "b");
  b.watch();
  const auto put = [&](const std::string& name, std::optional<std::string> body, const std::string& needs = "") {
    return a.store->change_documents({.kind = "key", .needs = needs, .all = {{name, std::move(body)}}});
  };
  const auto seen = [&] {
    std::string text;
    for (const SharedDocument& one : b.documents.documents) text += one.kind + " " + one.name + " " + one.body + "\n";
    return text;
  };
  const auto first = put("one", "1");
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(put("two", "2"));
  EXPECT_TRUE(b.until([&] { return seen() == "key one 1\nkey two 2\n"; }, std::chrono::seconds(5))) << seen();
  EXPECT_GT(b.documents.revision, *first);
  // All of a change or nothing, by what it needs.
  const DocumentChanges rotation{.kind = "key", .needs = "one", .all = {{"one", "old"}, {"three", "new"}}};
  ASSERT_TRUE(a.store->change_documents(rotation));
  ASSERT_TRUE(put("one", std::nullopt));
  EXPECT_EQ(a.store->change_documents(rotation).error().code, Errc::kNotFound);
  const DocumentChanges removal{.kind = "key", .needs = "one", .all = {{"two", std::nullopt}, {"four", "4"}}};
  EXPECT_EQ(a.store->change_documents(removal).error().code, Errc::kNotFound);
  EXPECT_TRUE(b.until([&] { return seen() == "key three new\nkey two 2\n"; }, std::chrono::seconds(5))) << seen();
  // A store that lost changes is told as such.
  EXPECT_FALSE(b.documents.is_anew);
  server().query("DELETE FROM fairlead.documents");
  server().query("UPDATE fairlead.document_clock SET revision = 1");
  server().query("UPDATE fairlead.nodes SET lease_until = lease_until - interval '1 minute'");
  EXPECT_TRUE(b.until([&] { return b.documents.is_anew && b.documents.documents.empty(); }, std::chrono::seconds(15)));
}

// Nodes of before made the tables; their schema becomes this one's.
TEST_F(PostgresStoreTest, AStoreOfAnEarlierSchemaGetsItsDocuments) {
  TestNode(folder / "a").watch();
  server().query("DROP TABLE fairlead.documents, fairlead.document_clock");
  server().query("UPDATE fairlead.schema_version SET version = 1");
  TestNode b(folder / "b");
  EXPECT_TRUE(b.store->change_documents({.kind = "key", .needs = "", .all = {{"one", "1"}}}));
}

// Refused at once while the server is gone; what ends accepted work is kept and written when it is back.
TEST_F(PostgresStoreTest, WithoutTheServerNothingIsAcceptedAndNothingIsForgotten) {
  TestNode a(folder / "a");
  a.watch();
  ASSERT_TRUE(a.put_function({.name = "f"}));
  for (const char* id : {"done", "waits"}) ASSERT_TRUE(a.put_event(event_of("f", id)));
  server().stop("immediate");
  bool is_finished = false;
  a.store->finish_event("done", [&](const Status& status) { is_finished = static_cast<bool>(status); });
  Status refused;
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(a.until([&] {
    refused = a.put_event(event_of("f", "new"));
    return !refused;
  }));
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  ASSERT_TRUE(a.until([&] { return !a.store->may_start_events(); })) << "its lease may be another's";
  EXPECT_FALSE(is_finished);
  server().start();
  ASSERT_TRUE(a.until([&] { return is_finished; }));
  ASSERT_TRUE(a.until([&] { return a.put_event(event_of("f", "new")).has_value(); }));
  ASSERT_TRUE(a.until([&] { return a.store->may_start_events(); }));
  EXPECT_EQ(server().query("SELECT count(*) FROM fairlead.events WHERE request_id IN ('waits', 'new')").integer(0, 0),
            2);
  EXPECT_EQ(server().query("SELECT count(*) FROM fairlead.events").integer(0, 0), 2);
}

// The server commits, and the connection ends before it says so: it waits for a standby that does not exist.
class Unheard {
 public:
  // A write of its own shows when the server has read that. REQUIRES: a node has made the tables.
  Unheard() {
    server().query("ALTER SYSTEM SET synchronous_standby_names TO 'nobody'");
    server().query("SELECT pg_reload_conf()");
    probe_ = std::thread([] {
      auto connection = postgres::Connection::open(postgres::parse_target(server().url(), "").value()).value();
      while (!connection->lost()) {
        (void)connection->run(
            {"INSERT INTO fairlead.version_numbers VALUES ('probe', 1) ON CONFLICT (function) DO "
             "UPDATE SET last = version_numbers.last + 1",
             {}});
      }
    });
    FL_CHECK(comes_true([] { return waiting("probe") > 0; }));
  }
  ~Unheard() { probe_.join(); }

  // Of a statement about events. REQUIRES: it was sent.
  void lose_answer() {
    EXPECT_TRUE(comes_true([] { return waiting("events") > 0; }));
    server().query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'fairlead%' AND pid <> "
        "pg_backend_pid()");
    server().query("ALTER SYSTEM RESET synchronous_standby_names");  // last, since whoever waits is answered then
    server().query("SELECT pg_reload_conf()");
  }

 private:
  static bool comes_true(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return condition();
  }
  static std::int64_t waiting(const std::string& word) {
    static const std::string kAsk =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%";
    return server().query((kAsk + word + "%'").c_str()).integer(0, 0);
  }

  std::thread probe_;
};

// Its caller was told so, and sends another.
TEST_F(PostgresStoreTest, AnEventWhoseCommitWasNotHeardIsTakenBack) {
  TestNode a(folder / "a");
  ASSERT_TRUE(a.put_function({.name = "f"}));
  Unheard unheard;
  std::optional<Status> fate;
  a.store->put_event(event_of("f", "unheard"), [&](Status status) { fate = std::move(status); });
  unheard.lose_answer();
  ASSERT_TRUE(a.until([&] { return fate.has_value(); }));
  ASSERT_FALSE(*fate);
  EXPECT_EQ(fate->error().code, Errc::kUnavailable);
  ASSERT_TRUE(a.until([&] { return a.put_event(event_of("f", "next")).has_value(); }));
  const Rows left = server().query("SELECT request_id FROM fairlead.events");
  ASSERT_EQ(left.size(), 1);
  EXPECT_EQ(left.text(0, 0), "next");
}

// It may still be about to carry out what it was sent, behind what takes that back.
TEST_F(PostgresStoreTest, ASessionThatWasGivenUpEndsBeforeAnythingElseIsWritten) {
  TestNode a(folder / "a");
  ASSERT_TRUE(a.put_function({.name = "f"}));
  const std::string name =
      server()
          .query("SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'fairlead writer %'")
          .text(0, 0);
  auto given_up = postgres::Connection::open(postgres::parse_target(server().url(), "").value());
  ASSERT_TRUE(given_up) << given_up.error().message;
  ASSERT_TRUE((*given_up)->run({"SELECT set_config('application_name', $1::text, false)", {name}}));
  server().query(
      "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'fairlead writer %' "
      "AND query NOT LIKE '%set_config%'");
  ASSERT_TRUE(a.until([&] { return a.put_event(event_of("f", "next")).has_value(); }));
  EXPECT_FALSE((*given_up)->run({"SELECT 1", {}})) << "it goes on";
}

TEST_F(PostgresStoreTest, AClaimWhoseCommitWasNotHeardIsGivenBack) {
  {
    TestNode gone(folder / "gone");
    ASSERT_TRUE(gone.put_function({.name = "f"}));
    ASSERT_TRUE(gone.put_event(event_of("f", "e")));
  }
  TestNode a(folder / "a");
  a.watch();
  Unheard unheard;
  std::optional<Result<std::vector<QueuedEvent>>> fate;
  a.store->claim_events({"f"}, 64, [&](auto events) { fate = std::move(events); });
  unheard.lose_answer();
  ASSERT_TRUE(a.until([&] { return fate.has_value(); }));
  ASSERT_FALSE(*fate);
  a.is_claimable = false;
  ASSERT_TRUE(a.until([&] { return a.is_claimable; }));
  EXPECT_EQ(a.claim({"f"}), (std::vector<std::string>{"e"}));
  EXPECT_EQ(a.leases_lost, 0) << "what it runs is its own";
}

TEST_F(PostgresStoreTest, TimesAreTheStores) {
  TestNode a(folder / "a");
  ASSERT_TRUE(a.put_function({.name = "f"}));
  auto connection = postgres::Connection::open(postgres::parse_target(server().url(), "").value()).value();
  const std::int64_t epoch = server().query("SELECT max(epoch) FROM fairlead.nodes").integer(0, 0);
  const postgres::Writer slow{.epoch = epoch, .ahead_ms = 7'200'000}, fast{.epoch = epoch, .ahead_ms = -60'000};
  QueuedEvent event = event_of("f", "e");
  event.accepted_ms = 1'000'000'000;
  event.invocation.deadline_ms = 1'000'900'000;
  ASSERT_TRUE(connection->transact(postgres::statements_of(postgres::put_event(event, slow))));
  EXPECT_EQ(server().query("SELECT accepted_ms FROM fairlead.events").integer(0, 0), 1'007'200'000);
  server().query("UPDATE fairlead.events SET owner = 0");
  const auto claimed = connection->transact(postgres::claim_events({"f"}, 1, 1, fast));
  ASSERT_TRUE(claimed);
  const auto seen = postgres::events_of(claimed->front(), fast);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].accepted_ms, 1'007'260'000);
  EXPECT_EQ(seen[0].invocation.deadline_ms, 1'008'160'000);
  EXPECT_EQ(seen[0].not_before_ms, 0) << "no time at all stays that";
}

// What was sent before it was void may arrive later than that.
TEST_F(PostgresStoreTest, AVoidClaimGetsNothing) {
  {
    TestNode gone(folder / "gone");
    ASSERT_TRUE(gone.put_function({.name = "f"}));
    ASSERT_TRUE(gone.put_event(event_of("f", "e")));
  }
  TestNode a(folder / "a");
  const postgres::Writer writer{.epoch = server().query("SELECT max(epoch) FROM fairlead.nodes").integer(0, 0)};
  auto connection = postgres::Connection::open(postgres::parse_target(server().url(), "").value()).value();
  ASSERT_TRUE(connection->transact(postgres::void_claim(7, writer)));
  const auto claimed = connection->transact(postgres::claim_events({"f"}, 64, 7, writer));
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->front().size(), 0);
  const auto later = connection->transact(postgres::claim_events({"f"}, 64, 8, writer));
  ASSERT_TRUE(later);
  EXPECT_EQ(later->front().size(), 1);
}

// Nobody could renew a lease while the server was away, so that none is ended for that.
TEST_F(PostgresStoreTest, AServerThatWasAwayCostsNobodyHisLease) {
  TestNode a(folder / "a"), b(folder / "b"), c(folder / "c");
  for (TestNode* const node : {&a, &b, &c}) node->watch();
  ASSERT_TRUE(a.until([&] { return a.store->may_start_events(); }));
  const auto all = server().query("SELECT count(*) FROM fairlead.nodes WHERE NOT ended").integer(0, 0);
  EXPECT_EQ(all, 3);
  server().stop("immediate");
  ASSERT_TRUE(a.until([&] { return !a.store->may_start_events(); }));
  const auto out =
      std::chrono::steady_clock::now() + kEventLease - kStartsAfterRenewal + std::chrono::milliseconds(200);
  a.until([&] { return std::chrono::steady_clock::now() > out; });
  server().start();
  for (TestNode* const node : {&a, &b, &c}) {
    ASSERT_TRUE(node->until([&] { return node->store->may_start_events(); }));
  }
  const auto later = std::chrono::steady_clock::now() + std::chrono::seconds(2);  // wait: each looks twice
  a.until([&] { return std::chrono::steady_clock::now() > later; });
  for (TestNode* const node : {&a, &b, &c}) {
    node->io.restart();
    node->io.poll();
    EXPECT_EQ(node->leases_lost, 0);
  }
  EXPECT_EQ(server().query("SELECT count(*) FROM fairlead.nodes WHERE NOT ended").integer(0, 0), 3);
}

TEST_F(PostgresStoreTest, ANodeThatStartsWithoutTheServerServesWhatItKnew) {
  {
    TestNode a(folder / "a");
    ASSERT_TRUE(a.put_function({.name = "f"}));
    ASSERT_TRUE(a.put_function({.name = "deleted meanwhile"}));
    ASSERT_TRUE(a.wait_for([&](auto done) { a.store->put_event_config("f", {.retries = 1}, done); }));
    ASSERT_TRUE(a.put_event(event_of("f", "left")));
    a.watch();
    ASSERT_TRUE(a.until([&] { return std::filesystem::exists(folder / "a/store-answers"); }));
  }
  {
    TestNode b(folder / "b");
    ASSERT_TRUE(b.wait_for([&](auto done) { b.store->delete_function("deleted meanwhile", done); }));
    ASSERT_TRUE(b.put_function({.name = "made meanwhile"}));
  }
  server().stop("immediate");
  boost::asio::io_context io;
  EXPECT_EQ(open_shared(io, folder / "new").error().code, Errc::kUnavailable) << "it knows nothing";
  TestNode a(folder / "a");
  EXPECT_EQ(a.store->load_event_configs().value().at("f").retries, 1);
  EXPECT_TRUE(a.store->load_profiles());
  EXPECT_TRUE(a.store->load_published());
  a.watch();
  EXPECT_EQ(a.functions, (std::vector<std::string>{"deleted meanwhile", "f"}));
  EXPECT_EQ(a.put_event(event_of("f", "new")).error().code, Errc::kUnavailable);
  EXPECT_FALSE(a.store->may_start_events());
  server().start();
  ASSERT_TRUE(a.until([&] { return a.store->may_start_events() && a.is_claimable; }));
  EXPECT_EQ(a.claim({"f"}), (std::vector<std::string>{"left"}));
  EXPECT_TRUE(a.put_event(event_of("f", "new")));
  const auto is_seen = [&](const std::string& name, bool is_there) {
    return std::any_of(a.changes.begin(), a.changes.end(), [&](const FunctionChange& change) {
      return change.function == name && change.record.has_value() == is_there;
    });
  };
  EXPECT_TRUE(a.until([&] { return is_seen("deleted meanwhile", false) && is_seen("made meanwhile", true); },
                      std::chrono::seconds(5)));
}

// Many events are one statement: what is wrong with one of them is its own.
TEST_F(PostgresStoreTest, OfManyEventsThatAreWrittenAtOnceOnlyThoseAreRefusedThatMustBe) {
  TestNode a(folder / "a");
  for (const char* name : {"f", "g", "deleted"}) ASSERT_TRUE(a.put_function({.name = name}));
  ASSERT_TRUE(a.wait_for([&](auto done) { a.store->delete_function("deleted", done); }));
  std::map<std::string, Status> fates;
  const auto put = [&](const std::string& function, const std::string& id) {
    a.store->put_event(event_of(function, id), [&fates, id](const Status& status) { fates[id] = status; });
  };
  put("f", "first");  // is on its way alone, while the others queue up
  for (int i = 0; i < 100; ++i) put(i % 2 == 0 ? "f" : "g", "e" + std::to_string(i));
  put("deleted", "of a deleted one");
  put("\xff", "no UTF-8");
  put("f", "e7");  // again
  put("never deployed", "unknown");
  ASSERT_TRUE(a.until([&] { return fates.size() == 104; }));
  ASSERT_TRUE(a.until([&] { return a.store->pending_writes() == 0; }));
  EXPECT_EQ(fates["of a deleted one"].error().code, Errc::kUnavailable);
  EXPECT_EQ(fates["no UTF-8"].error().code, Errc::kInvalidArgument);
  EXPECT_EQ(std::count_if(fates.begin(), fates.end(), [](const auto& fate) { return !fate.second; }), 2);
  EXPECT_EQ(server().query("SELECT count(*) FROM fairlead.events").integer(0, 0), 102);
  EXPECT_EQ(server().query("SELECT function FROM fairlead.events WHERE request_id = 'e7'").text(0, 0), "f");
}

// The connection is lost while many operations are on their way: what ends work is written, what brings some was refused and taken back.
TEST_F(PostgresStoreTest, OfOperationsOnTheirWayNothingIsAcceptedThatIsNotThere) {
  TestNode a(folder / "a");
  ASSERT_TRUE(a.put_function({.name = "f"}));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(a.put_event(event_of("f", "old" + std::to_string(i))));
  auto holder = postgres::Connection::open(postgres::parse_target(server().url(), "").value()).value();
  constexpr std::int64_t kChanges = 4604226;  // what every change of a function takes
  for (const std::int64_t lock : {std::int64_t{1}, kChanges}) {
    ASSERT_TRUE(holder->run({"SELECT pg_advisory_lock($1::bigint)", {lock}}));
  }
  server().query(
      "CREATE FUNCTION fairlead.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM "
      "pg_advisory_xact_lock_shared(1); RETURN NEW; END $$");
  server().query("CREATE TRIGGER wait BEFORE INSERT ON fairlead.events FOR EACH ROW EXECUTE FUNCTION fairlead.wait()");
  std::map<std::string, Status> fates;
  int finished = 0;
  a.store->put_function({.name = "waits for the lock"}, {});  // and all that follows gathers behind it
  for (int i = 0; i < 20; ++i) {
    const std::string id = "new" + std::to_string(i);
    a.store->put_event(event_of("f", id), [&fates, id](const Status& status) { fates[id] = status; });
    a.store->finish_event("old" + std::to_string(i), [&](const Status& status) { finished += status ? 1 : 0; });
  }
  ASSERT_TRUE(holder->run({"SELECT pg_advisory_unlock($1::bigint)", {kChanges}}));
  ASSERT_TRUE(a.until([] {
    return server()
               .query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE '%events%'")
               .integer(0, 0) > 0;
  }));
  server().query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'fairlead%' AND query LIKE "
      "'%events%' AND pid <> pg_backend_pid()");
  ASSERT_TRUE(a.until([&] { return fates.size() == 20; }));
  holder.reset();
  ASSERT_TRUE(a.until([&] { return finished == 20 && a.store->pending_writes() == 0; }));
  for (const auto& [id, fate] : fates) {
    EXPECT_EQ(fate ? Errc::kInternal : fate.error().code, Errc::kUnavailable) << id;
  }
  EXPECT_EQ(server().query("SELECT count(*) FROM fairlead.events").integer(0, 0), 0);
  ASSERT_TRUE(a.until([&] { return a.put_event(event_of("f", "next")).has_value(); }));
}

TEST_F(PostgresStoreTest, AStatementThatIsCancelledIsRunAgainWhereItEndsWork) {
  TestNode a(folder / "a");
  ASSERT_TRUE(a.put_function({.name = "f"}));
  ASSERT_TRUE(a.put_event(event_of("f", "e")));
  auto holder = postgres::Connection::open(postgres::parse_target(server().url(), "").value()).value();
  server().query(
      "CREATE FUNCTION fairlead.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM "
      "pg_advisory_xact_lock_shared(1); RETURN OLD; END $$");
  server().query("CREATE TRIGGER wait BEFORE DELETE ON fairlead.events FOR EACH ROW EXECUTE FUNCTION fairlead.wait()");
  ASSERT_TRUE(holder->run({"SELECT pg_advisory_lock(1)", {}}));
  std::optional<Status> fate;
  a.store->finish_event("e", [&](const Status& status) { fate = status; });
  bool is_cancelled = false;
  ASSERT_TRUE(a.until([&] {
    constexpr const char* kCancel =
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE "
        "'%events%'";
    is_cancelled = is_cancelled || server().query(kCancel).integer(0, 0) > 0;
    return is_cancelled;
  }));
  holder.reset();
  ASSERT_TRUE(a.until([&] { return fate.has_value(); }));
  EXPECT_TRUE(*fate);
  EXPECT_EQ(server().query("SELECT count(*) FROM fairlead.events").integer(0, 0), 0);
}

TEST_F(PostgresStoreTest, ATableThatIsAlteredIsReadOn) {
  TestNode a(folder / "a"), b(folder / "b");
  b.watch();
  ASSERT_TRUE(a.put_function({.name = "f"}));
  ASSERT_TRUE(b.until([&] { return b.changes.size() == 1; }, std::chrono::seconds(5)));
  server().query("ALTER TABLE fairlead.functions ALTER COLUMN record TYPE varchar");
  ASSERT_TRUE(a.put_function({.name = "g"}));
  EXPECT_TRUE(b.until([&] { return b.changes.size() == 2; }, std::chrono::seconds(15)));
}

// What ends accepted work is kept until somebody has mended what is wrong.
TEST_F(PostgresStoreTest, WithoutARightNothingIsAcceptedAndNothingIsForgotten) {
  for (const char* sql : {"DROP DATABASE IF EXISTS plain WITH (FORCE)", "DROP ROLE IF EXISTS plain",
                          "CREATE ROLE plain LOGIN", "CREATE DATABASE plain OWNER plain"}) {
    server().query(sql);
  }
  const std::string url = server().url_of("plain", "plain");
  const auto as_owner = [&](const char* sql) {
    auto connection = postgres::Connection::open(postgres::parse_target(url, "").value()).value();
    EXPECT_TRUE(connection->run({sql, {}}));
  };
  {
    TestNode a(folder / "a", url);
    ASSERT_TRUE(a.put_function({.name = "f"}));
    ASSERT_TRUE(a.put_event(event_of("f", "e")));
    as_owner("REVOKE DELETE, INSERT ON fairlead.events FROM plain");
    std::optional<Status> fate;
    a.store->finish_event("e", [&](const Status& status) { fate = status; });
    const Status refused = a.put_event(event_of("f", "new"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::kUnavailable) << "the caller has every right";
    EXPECT_NE(refused.error().message.find("permission denied"), std::string::npos) << refused.error().message;
    EXPECT_FALSE(fate);
    as_owner("GRANT DELETE, INSERT ON fairlead.events TO plain");
    ASSERT_TRUE(a.until([&] { return fate.has_value(); }));
    EXPECT_TRUE(*fate);
    EXPECT_TRUE(a.put_event(event_of("f", "new")));
  }
  server().query("DROP DATABASE plain WITH (FORCE)");
}

// One that died before the server's clock was set back has a lease for long.
TEST_F(PostgresStoreTest, ALeaseThatIsLongerThanAnyCanBeIsEnded) {
  put_and_die(folder / "a", 1);
  server().query("UPDATE fairlead.nodes SET lease_until = now() + interval '1 hour' WHERE NOT ended");
  TestNode b(folder / "b");
  b.watch();
  ASSERT_TRUE(b.until([&] { return b.is_claimable; }, std::chrono::seconds(10)));
  EXPECT_EQ(b.claim({"f"}), (std::vector<std::string>{"e0"}));
}

// Its numbers begin again from where they were then.
TEST_F(PostgresStoreTest, AServerThatWasRestoredFromABackupIsReadAnew) {
  TestNode a(folder / "a"), b(folder / "b");
  for (const char* name : {"f", "lost"}) ASSERT_TRUE(a.put_function({.name = name}));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(a.put_function({.name = "f"}));
  b.watch();
  ASSERT_TRUE(b.until([&] { return b.store->may_start_events(); }));
  server().query("DELETE FROM fairlead.functions WHERE name = 'lost'");
  server().query("UPDATE fairlead.functions SET revision = 1");
  server().query("SELECT setval('fairlead.revisions', 1)");
  server().query("UPDATE fairlead.nodes SET lease_until = lease_until - interval '1 minute'");
  ASSERT_TRUE(a.put_function({.name = "made since"}));
  const auto is_seen = [&](const std::string& name, bool is_there) {
    return std::any_of(b.changes.begin(), b.changes.end(), [&](const FunctionChange& change) {
      return change.function == name && change.record.has_value() == is_there;
    });
  };
  EXPECT_TRUE(b.until([&] { return is_seen("made since", true) && is_seen("f", true) && is_seen("lost", false); },
                      std::chrono::seconds(5)));
  EXPECT_EQ(b.leases_lost, 0) << "what it runs is its own";
}

// The numbers of a sequence would be given again, to another node.
TEST_F(PostgresStoreTest, NoEpochIsGivenTwiceByAServerThatWasRestored) {
  std::set<std::int64_t> epochs;
  for (int start = 0; start < 2; ++start) {
    {
      TestNode a(folder / "a");
    }
    epochs.insert(server().query("SELECT max(epoch) FROM fairlead.nodes").integer(0, 0));
    server().query("DELETE FROM fairlead.nodes WHERE epoch > 0");
    server().query("SELECT setval('fairlead.nodes_epoch_seq', 1, false)");
  }
  EXPECT_EQ(epochs.size(), 2u);
}

// Names are for people alone.
TEST_F(PostgresStoreTest, NodesOfOneNameAreTwo) {
  TestNode a(folder / "a"), b(folder / "b");  // both are called "test"
  for (TestNode* const node : {&a, &b}) node->watch();
  ASSERT_TRUE(a.put_function({.name = "f"}));
  ASSERT_TRUE(a.put_event(event_of("f", "e")));
  EXPECT_TRUE(b.claim({"f"}).empty());
  ASSERT_TRUE(a.until([&] { return a.store->may_start_events() && b.store->may_start_events(); }));
  EXPECT_EQ(server().query("SELECT count(*) FROM fairlead.nodes WHERE NOT ended").integer(0, 0), 2);
}

TEST_F(PostgresStoreTest, AServerThatTakesNoMoreConnectionsIsOneThatIsAway) {
  TestNode a(folder / "a");
  std::vector<std::unique_ptr<postgres::Connection>> all;
  const auto target = postgres::parse_target(server().url(), "").value();
  while (auto one = postgres::Connection::open(target)) all.push_back(*std::move(one));
  boost::asio::io_context io;
  const auto refused = open_shared(io, folder / "b");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  EXPECT_EQ(a.store->put_code("d", "zip").error().code, Errc::kUnavailable);
  EXPECT_TRUE(a.put_function({.name = "f"})) << "it has its own";
  all.clear();
  ASSERT_TRUE(a.until([&] {  // the server notices
    const auto one = postgres::Connection::open(target);
    return one && (*one)->run({"SELECT count(*) FROM pg_stat_activity", {}})->integer(0, 0) < 20;
  }));
  TestNode b(folder / "b");
}

TEST_F(PostgresStoreTest, APasswordInTheUrlAndFilesThatOthersReadAreRefused) {
  boost::asio::io_context io;
  const auto open = [&](const std::string& url, const std::string& file) {
    return open_postgres_store(io, folder / "a", {.url = url, .password_file = file, .node_name = "n"});
  };
  const auto with_password = open("postgresql://u:geheim@/db?host=/tmp", "");
  ASSERT_FALSE(with_password);
  EXPECT_EQ(with_password.error().code, Errc::kInvalidArgument);
  EXPECT_EQ(with_password.error().message.find("geheim"), std::string::npos);
  EXPECT_EQ(open("mysql://x", "").error().code, Errc::kInvalidArgument);
  folder.write("password", "geheim\n");
  ::chmod((folder / "password").c_str(), 0644);
  const auto readable = open(server().url(), folder / "password");
  ASSERT_FALSE(readable);
  EXPECT_NE(readable.error().message.find("chmod 600"), std::string::npos);
  ::chmod((folder / "password").c_str(), 0600);
  EXPECT_TRUE(open(server().url(), folder / "password"));
  EXPECT_EQ(open("postgresql:///db?host=" + folder.path(), "").error().code, Errc::kUnavailable);
}

TEST_F(PostgresStoreTest, ANewerSchemaIsRefusedAndLeftAlone) {
  { TestNode a(folder / "a"); }
  server().query("UPDATE fairlead.schema_version SET version = 99");
  boost::asio::io_context io;
  const auto newer = open_shared(io, folder / "a");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, Errc::kConflict);
  EXPECT_NE(newer.error().message.find("version 99"), std::string::npos);
}

TEST_F(PostgresStoreTest, TheOldestLettersOfWhoHasMostAreDropped) {
  TestNode a(folder / "a");
  for (const auto& [name, tenant] : {std::pair("quiet", "acme"), std::pair("flood", "thief")}) {
    FunctionRecord record{.name = name};
    record.config.tags = {{"gpu:tenant", tenant}};
    ASSERT_TRUE(a.put_function(record));
  }
  server().query(
      "INSERT INTO fairlead.dead_letters (request_id, function, payload, client_context, trace_id, http, error_type, "
      "error_message, attempts, accepted_ms, failed_ms, version) SELECT i::text, CASE WHEN i <= 20 THEN 'quiet' ELSE "
      "'flood' END, "
      "'', '', '', '', '', '', 0, 0, 0, 0 FROM generate_series(1, 10200) i");
  a.watch();
  ASSERT_TRUE(a.until([] {
    return server().query("SELECT count(*) FROM fairlead.dead_letters").integer(0, 0) == postgres::kMaxDeadLetters;
  }));
  EXPECT_EQ(server().query("SELECT count(*) FROM fairlead.dead_letters WHERE function = 'quiet'").integer(0, 0), 20);
  EXPECT_EQ(server().query("SELECT min(id) FROM fairlead.dead_letters WHERE function = 'flood'").integer(0, 0), 221);
}

}  // namespace
}  // namespace fairlead
