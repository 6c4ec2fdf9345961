#include "store/state_tally.h"

#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "store/records.h"
#include "store/schema.h"
#include "store/test_folder.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using store::Tally;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Tally, ReadsWhatItWritesAndSeesEveryFlippedBit) {
  const Tally tally{.accepted = 150, .over = 58, .changes = 1'234'567};
  std::string text = store::encode(tally);
  EXPECT_EQ(store::decode_tally(text), tally);
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(store::decode_tally(text), std::nullopt) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
  }
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(store::decode_tally(text.substr(0, size)));
}

StateDamage compared(const store::TallyFile& file, const Tally& database) {
  StateDamage damage;
  store::compare(file, database, damage);
  return damage;
}

TEST(Tally, ADatabaseBehindItsFileHasLostWhatIsBetween) {
  const StateDamage damage = compared({true, Tally{.accepted = 150, .over = 20, .changes = 300}},
                                      {.accepted = 92, .over = 30, .changes = 200});
  EXPECT_EQ(damage.lost_changes, 100u);
  EXPECT_EQ(damage.lost_events, 58u);
  EXPECT_TRUE(damage.may_lack_changes);
  EXPECT_THAT(damage.findings, ElementsAre(HasSubstr("lacks the last 100 changes")));
}

TEST(Tally, AFileBehindItsDatabaseSaysNothing) {
  EXPECT_THAT(compared({true, Tally{1, 0, 1}}, {2, 0, 2}).findings, IsEmpty()) << "a power cut: the file is not synced";
  EXPECT_THAT(compared({true, Tally{2, 0, 2}}, {2, 0, 2}).findings, IsEmpty());
  EXPECT_THAT(compared({}, {}).findings, IsEmpty()) << "both are new";
  EXPECT_FALSE(compared({true, Tally{1, 0, 1}}, {2, 0, 2}).may_lack_changes);
  EXPECT_FALSE(compared({}, {}).may_lack_changes);
}

TEST(Tally, AFileThatCannotBeReadIsSaid) {
  EXPECT_THAT(compared({}, {2, 0, 2}).findings, ElementsAre(HasSubstr("is missing")));
  EXPECT_THAT(compared({.exists = true}, {2, 0, 2}).findings, ElementsAre(HasSubstr("is damaged")));
  EXPECT_TRUE(compared({}, {2, 0, 2}).may_lack_changes);
  EXPECT_TRUE(compared({.exists = true}, {}).may_lack_changes) << "the database may be the one that is new";
}

// A store that is killed: its files as they are, copied while it runs.
class DamagedState : public testing::Test {
 protected:
  std::unique_ptr<Store> open(const std::string& path) {
    auto opened = Store::open(io, path);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  void accept(Store& store, int count) {
    for (int i = 0; i < count; ++i) {
      QueuedEvent event{.accepted_ms = 7};
      event.invocation = {
          .request_id = fmt::format("event-{:04}", i), .function = "f", .payload = std::string(300, 'p')};
      store.put_event(std::move(event), [](const Status& written) { EXPECT_TRUE(written); });
      io.restart();
      io.run();  // a commit each
    }
  }
  std::string killed(const char* name) {
    const std::string copy = folder / name;
    fs::create_directories(copy);
    for (const char* file : {"state.db", "state.db-wal", "state.tally"}) {
      if (fs::exists(folder / "s" + "/" + file)) fs::copy_file(folder / "s" + "/" + file, copy + "/" + file);
    }
    return copy;
  }
  static void flip(const std::string& path, std::streamoff byte) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(byte);
    const char flipped = static_cast<char>(file.get() ^ 4);
    file.seekp(byte);
    file.put(flipped);
  }
  // With a whole database that the log has been put into.
  std::string closed() {
    auto store = open(folder / "s");
    accept(*store, 40);
    store.reset();
    return folder / "s";
  }

  store::TestFolder folder;
  boost::asio::io_context io;
};

TEST_F(DamagedState, WhatIsWholeIsNotComplainedOf) {
  auto store = open(folder / "s");
  accept(*store, 40);
  store->finish_event("event-0003", {});
  store->load_events().value();
  const std::string copy = killed("copy");
  store.reset();
  for (const std::string& path : {copy, folder / "s"}) {
    auto again = open(path);
    EXPECT_EQ(again->load_events()->size(), 39u);
    EXPECT_THAT(again->damage().findings, IsEmpty()) << path;
  }
}

TEST_F(DamagedState, OneFlippedBitInTheLogIsCounted) {
  auto store = open(folder / "s");
  accept(*store, 40);
  const std::string copy = killed("copy");
  flip(copy + "/state.db-wal", static_cast<std::streamoff>(fs::file_size(copy + "/state.db-wal") / 2));
  auto again = open(copy);
  const std::size_t left = again->load_events()->size();
  EXPECT_LT(left, 40u) << "SQLite takes the log to end there";
  EXPECT_EQ(again->damage().lost_events, 40 - left);
  EXPECT_THAT(again->damage().findings, ElementsAre(HasSubstr("write-ahead log")));
  again.reset();
  EXPECT_THAT(open(copy)->damage().findings, IsEmpty()) << "it is said once";
}

TEST_F(DamagedState, ALogThatIsGoneIsNoticed) {
  auto store = open(folder / "s");
  accept(*store, 40);
  const std::string copy = killed("copy");
  fs::remove(copy + "/state.db-wal");
  EXPECT_EQ(open(copy)->damage().lost_events, 40u);
}

TEST_F(DamagedState, ADatabaseThatIsGoneIsNoticed) {
  const std::string path = closed();
  fs::remove(path + "/state.db");
  EXPECT_EQ(open(path)->damage().lost_events, 40u);
}

TEST_F(DamagedState, ARecordWithAFlippedBitIsADeadLetterAndNeverRun) {
  const std::string path = closed();
  std::string bytes;
  {
    std::ifstream file(path + "/state.db", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::size_t at = bytes.find("event-0007");
  ASSERT_NE(at, std::string::npos);
  at = bytes.find(std::string(300, 'p'), at);
  ASSERT_NE(at, std::string::npos);
  flip(path + "/state.db", static_cast<std::streamoff>(at + 150));
  auto store = open(path);
  EXPECT_EQ(store->load_events()->size(), 39u);
  EXPECT_EQ(store->damage().damaged_events, 1u);
  EXPECT_THAT(store->damage().findings, ElementsAre(HasSubstr("is damaged: it is not run")));
  std::size_t redriven = 99;
  std::string type;
  store->put_function({.name = "f"}, {});
  store->redrive_dead_letters("f", 10, 1, [&](const Result<Redriven>& result) { redriven = result->events.size(); });
  store->list_dead_letters("", 10,
                           [&](const Result<std::vector<DeadLetter>>& letters) { type = letters->at(0).error_type; });
  io.restart();
  io.run();
  EXPECT_EQ(redriven, 0u);
  EXPECT_EQ(type, store::kDamaged);
}

// In the table's row and in the index over it: what is not damaged is run, and the node starts.
TEST_F(DamagedState, AFlippedBitInAnIdStopsNothing) {
  const std::string path = closed();
  std::string bytes;
  {
    std::ifstream file(path + "/state.db", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::vector<std::size_t> places;
  for (std::size_t at = 0; (at = bytes.find("event-0007", at)) != std::string::npos; ++at) places.push_back(at);
  ASSERT_GE(places.size(), 2u) << "the index has the id too";
  std::set<std::uint64_t> damaged;
  for (std::size_t i = 0; i < places.size(); ++i) {
    SCOPED_TRACE(i);
    const std::string copy = folder / ("copy-" + std::to_string(i));
    fs::copy(path, copy);
    flip(copy + "/state.db", static_cast<std::streamoff>(places[i]));
    auto store = open(copy);
    ASSERT_NE(store, nullptr);
    const std::size_t loaded = store->load_events()->size();
    damaged.insert(store->damage().damaged_events);
    EXPECT_EQ(loaded + store->damage().damaged_events, 40u);
    ASSERT_FALSE(store->damage().findings.empty());
    EXPECT_THAT(store->damage().findings[0], HasSubstr("an index of state.db was damaged"));
    Status finished;
    store->finish_event("event-0007", [&](Status status) { finished = std::move(status); });
    io.restart();
    io.run();
    EXPECT_TRUE(finished) << finished.error().message;
    store.reset();
    EXPECT_THAT(open(copy)->damage().findings, IsEmpty()) << "it is said once";
  }
  EXPECT_THAT(damaged, ElementsAre(0u, 1u)) << "in the index, and in the row";
}

// Every byte of every record, as SQLite would give it: nothing that was not accepted is run.
TEST_F(DamagedState, NoChangedFieldPassesItsChecksum) {
  fs::create_directories(folder / "s");
  StateDamage found;
  auto database = store::open_state_database(folder / "s", found).value();
  QueuedEvent event{.attempts = 1, .accepted_ms = 2, .not_before_ms = 3};
  event.invocation = {.request_id = "r", .function = "f", .payload = "p", .client_context = "c", .trace_id = "t"};
  event.invocation.deadline_ms = 4;
  for (const char* change : {"request_id = 'q'", "function = 'g'", "payload = x'71'", "client_context = ''",
                             "attempts = 0", "accepted_ms = 3", "not_before_ms = 2", "trace_id = 'tt'",
                             "deadline_ms = NULL", "http = x'474554'", "checksum = 0"}) {
    ASSERT_TRUE(store::put_event(*database, event));
    ASSERT_TRUE(database->run(fmt::format("UPDATE events SET {}", change)));
    std::vector<QueuedEvent> events;
    StateDamage damage;
    ASSERT_TRUE(store::load_events(*database, events, damage));
    EXPECT_THAT(events, IsEmpty()) << change;
    EXPECT_EQ(damage.damaged_events, 1u) << change;
  }
}

TEST_F(DamagedState, RowsThatAreGoneAreCounted) {
  const std::string path = closed();
  {
    StateDamage found;
    auto database = store::open_state_database(path, found).value();
    ASSERT_TRUE(database->run("UPDATE tally SET accepted = accepted + 3"));
  }
  auto store = open(path);
  EXPECT_EQ(store->load_events()->size(), 40u);
  EXPECT_EQ(store->damage().missing_events, 3u);
  store.reset();
  store = open(path);
  EXPECT_EQ(store->load_events()->size(), 40u);
  EXPECT_EQ(store->damage().missing_events, 0u) << "it is said once";
}

}  // namespace
}  // namespace fairlead
