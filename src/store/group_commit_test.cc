#include "store/group_commit.h"

#include <gmock/gmock.h>

#include <future>

#include "store/test_folder.h"

namespace fairlead::store {
namespace {

using enum GroupCommit::Admission;
using testing::ElementsAre;

struct GroupCommitTest : testing::Test {
  GroupCommitTest() {
    auto database = Database::open(folder / "test.db").value();
    FL_CHECK(database->run("CREATE TABLE t (x INTEGER UNIQUE)").has_value());
    commit.emplace(io, std::move(database), GroupCommitLimits{.pending = {.operations = 3, .bytes = 1000}});
  }

  // Keeps the writer inside a transaction until released, so that what follows is in one batch.
  std::promise<void> block_writer() {
    std::promise<void> release;
    auto entered = std::make_shared<std::promise<void>>();
    std::future<void> inside = entered->get_future();
    auto released = std::make_shared<std::future<void>>(release.get_future());
    commit->submit(
        [=](Database&) -> Status {
          entered->set_value();
          released->get();
          return {};
        },
        0, kRequired, {});
    inside.get();
    return release;
  }

  static GroupCommit::Apply insert(int value, int* runs = nullptr) {
    return [=](Database& database) {
      if (runs != nullptr) ++*runs;
      return database.run("INSERT INTO t VALUES (?)", std::int64_t{value});
    };
  }

  std::vector<std::int64_t> rows() {
    std::vector<std::int64_t> values;
    FL_CHECK(commit
                 ->run_and_wait([&](Database& database) {
                   values.clear();
                   return database.query("SELECT x FROM t ORDER BY rowid",
                                         [&](const Row& row) { values.push_back(row.integer(0)); });
                 })
                 .has_value());
    return values;
  }

  TestFolder folder;
  boost::asio::io_context io;
  std::optional<GroupCommit> commit;
};

TEST_F(GroupCommitTest, OneOperationThatFailsDoesNotFailItsNeighbours) {
  std::vector<bool> outcomes;
  int neighbour_runs = 0;
  auto note = [&](const Status& status) { outcomes.push_back(status.has_value()); };
  std::promise<void> release = block_writer();
  commit->submit(insert(1, &neighbour_runs), 1, kRequired, note);
  commit->submit(insert(1), 1, kRequired, note);  // UNIQUE
  commit->submit(insert(2), 1, kRequired, note);
  release.set_value();
  io.run();
  EXPECT_THAT(outcomes, ElementsAre(true, false, true));
  EXPECT_THAT(rows(), ElementsAre(1, 2));
  EXPECT_EQ(neighbour_runs, 2);  // it shared a transaction with the one that failed
}

TEST_F(GroupCommitTest, NewWorkIsRefusedBeyondTheLimitsAndRequiredWorkIsNot) {
  std::vector<std::string> outcomes;
  auto note = [&](std::string name) {
    return [&outcomes, name](const Status& status) {
      outcomes.push_back(name + (status ? " ok" : " " + std::string(errc_name(status.error().code))));
    };
  };
  std::promise<void> release = block_writer();  // one pending
  commit->submit(insert(1), 900, kRefusable, note("first"));
  commit->submit(insert(2), 200, kRefusable, note("too many bytes"));
  commit->submit(insert(3), 10, kRefusable, note("third"));
  commit->submit(insert(4), 10, kRefusable, note("too many operations"));
  commit->submit(insert(5), 10, kRequired, note("required"));
  EXPECT_EQ(commit->pending(), 4u);
  release.set_value();
  io.run();
  EXPECT_THAT(outcomes, testing::UnorderedElementsAre("too many bytes resource exhausted",
                                                      "too many operations resource exhausted", "first ok", "third ok",
                                                      "required ok"));
  EXPECT_EQ(commit->pending(), 0u);
  EXPECT_THAT(rows(), ElementsAre(1, 3, 5));
}

}  // namespace
}  // namespace fairlead::store
