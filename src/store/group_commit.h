// One thread that owns the database and turns many small writes into few transactions.
//
// The idea: an fsync costs milliseconds whatever it covers. While one runs, operations queue up; all of them go into
// the next transaction. 64 writers on a disk with 5 ms per fsync wait about 10 ms each instead of 320.
//
// Operations run in the order of submit(). A transaction that fails is rolled back and its operations run again, each
// in a transaction of its own, so that only those fail that cannot succeed (the one row that no longer fits on the
// disk).
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "store/pending_writes.h"
#include "store/sqlite.h"

namespace fairlead::store {

struct GroupCommitLimits {
  PendingLimits pending;
  std::size_t batch_operations = 512;  // of one transaction
};

class GroupCommit {
 public:
  using Apply = std::function<Status(Database&)>;
  using Done = std::function<void(Status)>;

  // `committed` runs on the writer's thread after each commit, before it is told.
  using Committed = std::function<void(Database&)>;
  GroupCommit(boost::asio::io_context& io, std::unique_ptr<Database> database, GroupCommitLimits limits,
              Committed committed = {});
  ~GroupCommit();  // commits what is pending

  // kRefusable operations bring new work and are refused beyond the limits (kResourceExhausted, through `done`).
  // kRequired ones finish work accepted before; there is at most one for each, so they need no bound of their own.
  enum class Admission { kRefusable, kRequired };

  // `apply` runs on the writer's thread, perhaps twice. `done` is posted to the io_context after the commit and keeps
  // run() of the io_context from returning until then. An empty `done`: a failure is logged.
  void submit(Apply apply, std::size_t bytes, Admission admission, Done done);

  // Blocks the caller until committed.
  Status run_and_wait(Apply apply);

  std::size_t pending() const;  // submitted, not yet committed or failed

 private:
  struct Operation {
    Apply apply;
    std::size_t bytes = 0;
    WriteEnd end;
  };

  void enqueue(Operation operation);
  void run();
  std::vector<Operation> next_batch();  // blocks; empty: stopping and nothing left
  void commit(std::vector<Operation>& batch);
  Status transact(std::vector<Operation>& batch, std::size_t first, std::size_t count);
  void finish(Operation& operation, const Status& status);

  boost::asio::io_context& io_;
  const std::unique_ptr<Database> database_;  // the writer's thread only
  const GroupCommitLimits limits_;
  const Committed committed_;

  mutable Mutex mutex_;
  ConditionVariable wake_;
  std::deque<Operation> queue_ FL_GUARDED_BY(mutex_);
  PendingWrites pending_ FL_GUARDED_BY(mutex_);
  bool stopping_ FL_GUARDED_BY(mutex_) = false;
  std::thread writer_;
};

}  // namespace fairlead::store
