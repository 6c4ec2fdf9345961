// One thread that writes to PostgreSQL and turns many small operations into few transactions (group_commit.h has the idea), and that
// outlives the server.
//
//   submit ──> queue ──up to 512──> one transaction, one round trip ──> done on the io_context
//                ^                        │ the connection is lost
//                └── what must be written ┴──> what brings new work: kUnavailable at once, until there is a connection again
//
// A transaction that fails is rolled back and its operations run again, each in one of its own. One that fails alone
//
//   brings new work             -> refused with the server's error
//   ends work that was accepted -> later: again after 2 s, then 4 s and so on to a minute, behind what was written meanwhile. A right that
//                                  was taken away or a disk that is full is somebody's to mend; text that is not UTF-8 is nobody's
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "store/pending_writes.h"
#include "store/postgres/connection.h"
#include "store/postgres/lease.h"
#include "store/postgres/records.h"

namespace fairlead::postgres {

// As a caller is told of it.
Error unreachable(const Error& why);

struct Operation {
  // On the writer's thread, perhaps several times; an error is the operation's.
  std::function<Result<Statements>(const Writer&)> build;
  std::function<Row(const Writer&)> row;  // instead, of an operation that is one row
  // Of what its statements gave, on the writer's thread after the commit. Empty: nothing is to be read.
  std::function<Status(const std::vector<Rows>& rows, StatementGroup::Place place, const Writer&)> read;
  // Of an operation that is refused though it may have been committed: what it may have written is taken back, whenever that can be.
  std::function<Statements(const Writer&)> undo;
  std::size_t bytes = 0;
  bool is_required = false;          // it ends work that was accepted: not refused, and kept until it is written
  std::function<void(Status)> done;  // on the io_context; keeps its run() from returning
};

// A connection for the queue, to tables that this program knows. A statement is planned once, for an index: tables that are empty when it is
// planned grow.
Result<std::unique_ptr<Connection>> open_writer(const Target& target);

struct CommitLimits {
  store::PendingLimits pending;
  std::size_t batch_operations = 512, batch_bytes = 8 << 20;  // of one transaction; one operation may be larger
  Duration first_retry = std::chrono::milliseconds(100), longest_retry = std::chrono::seconds(2);
  Duration first_later = std::chrono::seconds(2), longest_later = std::chrono::minutes(1);
  Duration patience_at_end =
      std::chrono::seconds(5);  // with a server that is not there, for what is still to be written
};

class CommitQueue {
 public:
  // `connection`: of open_writer(), or why there is none yet.
  CommitQueue(boost::asio::io_context& io, Target target, Result<std::unique_ptr<Connection>> connection, Lease& lease,
              CommitLimits limits = {});
  ~CommitQueue();  // writes what waits, while the server is there

  void submit(Operation operation);
  Status run_and_wait(Operation operation);  // its `done` is not called
  std::size_t pending() const;
  Status reachable() const;  // as far as the writer knows; what it says is for callers

 private:
  struct Queued {
    Operation operation;
    store::WriteEnd end;
    Writer writer = {};  // whom it was last written as
  };

  Status has_room_for(std::size_t bytes) const FL_REQUIRES(mutex_);
  void enqueue(Queued queued);
  void run();
  Status end_earlier_sessions(Connection& connection);
  std::vector<Queued> next_batch();
  bool wait_for_work();  // false: it ends
  bool reconnect();      // false: not now
  void refuse_waiting(const Error& error);
  void put_back(std::vector<Queued> batch, const Error& error);
  void take_back(Queued& refused) FL_REQUIRES(mutex_);
  void commit(std::vector<Queued> batch);
  void commit_alone(Queued queued);
  void postpone(Queued queued, const Error& error);
  std::optional<Error> transact(std::vector<Queued*>& batch);  // none: each was told
  void finish(Queued& queued, const Status& status);

  boost::asio::io_context& io_;
  const Target target_;
  Lease& lease_;
  const CommitLimits limits_;
  const std::string session_;               // the application_name of its connections, and of nobody else's
  std::unique_ptr<Connection> connection_;  // the writer's thread; null: there is none
  Duration retry_;                          // the same
  struct Later {                            // the same
    std::vector<Queued> operations;
    Instant due;
    Duration retry;
  } later_;

  mutable Mutex mutex_;
  ConditionVariable wake_;
  std::deque<Queued> queue_ FL_GUARDED_BY(mutex_);
  store::PendingWrites pending_ FL_GUARDED_BY(mutex_);
  std::optional<Error> away_ FL_GUARDED_BY(mutex_);  // why there is no connection
  std::optional<Instant> stop_by_ FL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace fairlead::postgres
