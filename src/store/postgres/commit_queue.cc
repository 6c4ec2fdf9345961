#include "store/postgres/commit_queue.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "store/postgres/schema.h"

namespace fairlead::postgres {

Error unreachable(const Error& why) {
  return {Errc::kUnavailable, "the store of the cluster cannot be reached, try again: " + why.message};
}

namespace {

// What the server refuses to this node is no fault of the caller, whose rights are not asked for there.
Error refusal(const Error& why) {
  if (why.code != Errc::kForbidden) return why;
  return {Errc::kUnavailable, "the store of the cluster refuses what this node writes: " + why.message};
}

std::string new_session_name() {
  char bytes[16];
  FL_CHECK(::getrandom(bytes, sizeof bytes, 0) == sizeof bytes, "no random bytes: errno {}", errno);
  return "fairlead writer " + to_hex({bytes, sizeof bytes});
}

}  // namespace

Result<std::unique_ptr<Connection>> open_writer(const Target& target) {
  auto connection = open_migrated(target);
  if (!connection) return fail(connection.error());
  for (const char* sql : {"SET plan_cache_mode TO force_generic_plan", "SET enable_seqscan TO off", "SET jit TO off"}) {
    if (auto set = (*connection)->run({sql, {}}); !set) return fail(set.error());
  }
  return connection;
}

CommitQueue::CommitQueue(boost::asio::io_context& io, Target target, Result<std::unique_ptr<Connection>> connection,
                         Lease& lease, CommitLimits limits)
    : io_(io),
      target_(std::move(target)),
      lease_(lease),
      limits_(limits),
      session_(new_session_name()),
      connection_(connection ? *std::move(connection) : nullptr),
      retry_(limits.first_retry),
      later_{.operations = {}, .due = {}, .retry = limits.first_later},
      pending_(limits.pending, "the store of the cluster"),
      away_(connection ? std::nullopt : std::optional(connection.error())),
      thread_([this] { run(); }) {}

CommitQueue::~CommitQueue() {
  {
    const MutexLock lock(mutex_);
    stop_by_ = monotonic_now() + limits_.patience_at_end;
  }
  wake_.notify_one();
  thread_.join();
}

Status CommitQueue::reachable() const {
  const MutexLock lock(mutex_);
  return away_ ? fail(unreachable(*away_)) : Status();
}

Status CommitQueue::has_room_for(std::size_t bytes) const {
  if (away_) return fail(unreachable(*away_));
  return pending_.room_for(bytes);
}

void CommitQueue::submit(Operation operation) {
  Status room;
  if (!operation.is_required) {
    const MutexLock lock(mutex_);
    room = has_room_for(operation.bytes);
  }
  if (!room && !operation.done) return;
  store::WriteEnd end = store::WriteEnd::on(io_, std::move(operation.done));
  if (!room) return end.tell(room, "");
  enqueue({.operation = std::move(operation), .end = std::move(end)});
}

Status CommitQueue::run_and_wait(Operation operation) {
  // Shared: the writer's thread may still be inside set_value() when the waiter has already returned.
  auto promise = std::make_shared<std::promise<Status>>();
  auto end = store::WriteEnd::here([promise](Status status) { promise->set_value(std::move(status)); });
  enqueue({.operation = std::move(operation), .end = std::move(end)});
  return promise->get_future().get();
}

std::size_t CommitQueue::pending() const {
  const MutexLock lock(mutex_);
  return pending_.operations();
}

void CommitQueue::enqueue(Queued queued) {
  {
    const MutexLock lock(mutex_);
    pending_.add(queued.operation.bytes);
    queue_.push_back(std::move(queued));
  }
  wake_.notify_one();
}

// ---- the writer's thread

// A session of this queue's that was given up may still be about to carry out what it was sent, once its server wakes up: behind
// what takes that back. So such sessions end before anything else is written.
Status CommitQueue::end_earlier_sessions(Connection& connection) {
  const Statement end{
      "SELECT bool_and(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = $1::text AND "
      "pid <> pg_backend_pid()",
      {session_}};
  const Statement name{"SELECT set_config('application_name', $1::text, false)", {session_}};
  for (const Statement* statement : {&name, &end}) {
    const auto rows = connection.run(*statement);
    if (!rows && connection.lost()) return fail(rows.error());
    if (!rows) {  // a server that does not let a role end its own sessions
      spdlog::warn("{}: what was sent before the connection was lost may be written late: {}", target_.label,
                   rows.error().message);
      return {};
    }
    if (statement == &end && rows->optional_integer(0, 0).value_or(1) == 0) {
      return fail(Errc::kUnavailable, "{}: a session of this node's that was lost has not ended", target_.label);
    }
  }
  return {};
}

void CommitQueue::run() {
  if (connection_ && !end_earlier_sessions(*connection_)) connection_.reset();
  while (wait_for_work()) {
    if (!connection_ && !reconnect()) continue;
    std::vector<Queued> batch = next_batch();
    if (!batch.empty()) commit(std::move(batch));
  }
  later_.due = Instant();
  while (true) {  // what could not be written: a start of this node, or another node, runs it again
    std::vector<Queued> batch = next_batch();
    if (batch.empty()) return;
    for (Queued& queued : batch) finish(queued, fail(Errc::kUnavailable, "{} is not there", target_.label));
  }
}

// Also where there is no connection, since somebody has to notice when the server is back.
bool CommitQueue::wait_for_work() {
  const MutexLock lock(mutex_);
  while (queue_.empty() && !stop_by_ && !away_) {
    if (later_.operations.empty()) {
      wake_.wait(mutex_);
    } else if (const Duration left = later_.due - monotonic_now(); left <= Duration::zero()) {
      return true;
    } else {
      wake_.wait_until(mutex_, std::chrono::steady_clock::now() + left);
    }
  }
  if (!stop_by_) return true;
  return !queue_.empty() && (!away_ || monotonic_now() < *stop_by_);
}

bool CommitQueue::reconnect() {
  auto opened = open_writer(target_);
  if (opened) {
    if (Status alone = end_earlier_sessions(**opened); !alone) opened = fail(alone.error());
  }
  const Instant next = monotonic_now() + retry_;
  if (opened) {
    connection_ = *std::move(opened);
    retry_ = limits_.first_retry;
    const MutexLock lock(mutex_);
    if (away_) spdlog::info("{}: connected again", target_.label);
    away_.reset();
    return true;
  }
  retry_ = std::min(retry_ * 2, limits_.longest_retry);
  refuse_waiting(opened.error());
  const MutexLock lock(mutex_);
  while (monotonic_now() < next && !(stop_by_ && monotonic_now() >= *stop_by_)) {
    if (!wake_.wait_until(mutex_, std::chrono::steady_clock::now() + (next - monotonic_now()))) break;
    if (stop_by_ && queue_.empty()) break;
  }
  return false;
}

// What brings new work is not kept waiting.
void CommitQueue::refuse_waiting(const Error& error) {
  std::vector<Queued> refused;
  {
    const MutexLock lock(mutex_);
    if (!away_)
      spdlog::error("the store of the cluster cannot be reached: {}; deploys and events are refused until it can",
                    error.message);
    away_ = error;
    std::deque<Queued> kept;
    for (Queued& queued : queue_) {
      if (queued.operation.is_required) {
        kept.push_back(std::move(queued));
      } else {
        refused.push_back(std::move(queued));
      }
    }
    queue_ = std::move(kept);
  }
  for (Queued& queued : refused) {
    finish(queued, fail(unreachable(error)));
  }
}

std::vector<CommitQueue::Queued> CommitQueue::next_batch() {
  const MutexLock lock(mutex_);
  if (!later_.operations.empty() && monotonic_now() >= later_.due) {
    for (Queued& queued : std::exchange(later_.operations, {})) queue_.push_back(std::move(queued));
  }
  std::vector<Queued> batch;
  std::size_t bytes = 0;
  while (!queue_.empty() && batch.size() < limits_.batch_operations) {
    bytes += queue_.front().operation.bytes;
    if (bytes > limits_.batch_bytes && !batch.empty()) break;
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return batch;
}

// Whether the server committed is not known. What is required is written again, with the same effect; the rest is refused, and taken
// back.
void CommitQueue::put_back(std::vector<Queued> batch, const Error& error) {
  connection_.reset();
  {
    const MutexLock lock(mutex_);
    for (Queued& queued : batch) take_back(queued);
    for (auto queued = batch.rbegin(); queued != batch.rend(); ++queued) queue_.push_front(std::move(*queued));
  }
  refuse_waiting(error);
}

// By an operation of its own, which is required.
void CommitQueue::take_back(Queued& refused) {
  if (!refused.operation.undo) return;
  Operation operation;
  operation.is_required = true;
  operation.build = [undo = std::move(refused.operation.undo),
                     writer = refused.writer](const Writer&) -> Result<Statements> { return undo(writer); };
  pending_.add(operation.bytes);
  queue_.push_back({.operation = std::move(operation), .end = {}});
}

void CommitQueue::commit(std::vector<Queued> batch) {
  std::vector<Queued*> all;
  for (Queued& queued : batch) all.push_back(&queued);
  const std::optional<Error> error = transact(all);
  if (!error) return;
  if (error->code == Errc::kUnavailable) return put_back(std::move(batch), *error);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (connection_) {
      commit_alone(std::move(batch[i]));
      continue;
    }
    std::vector<Queued> rest(std::make_move_iterator(batch.begin() + static_cast<std::ptrdiff_t>(i)),
                             std::make_move_iterator(batch.end()));
    const MutexLock lock(mutex_);
    for (auto queued = rest.rbegin(); queued != rest.rend(); ++queued) queue_.push_front(std::move(*queued));
    return;
  }
}

void CommitQueue::commit_alone(Queued queued) {
  constexpr int kMostDeadlocks = 5;
  std::optional<Error> error;
  std::vector<Queued*> alone{&queued};
  for (int i = 0; i < kMostDeadlocks; ++i) {
    error = transact(alone);
    if (!error || error->code != Errc::kConflict) break;
  }
  if (!error) return;
  if (error->code != Errc::kUnavailable) {
    if (queued.operation.is_required && error->code != Errc::kInvalidArgument)
      return postpone(std::move(queued), *error);
    return finish(queued, fail(refusal(*error)));
  }
  std::vector<Queued> batch;
  batch.push_back(std::move(queued));
  put_back(std::move(batch), *error);
}

void CommitQueue::postpone(Queued queued, const Error& error) {
  if (later_.operations.empty()) {
    spdlog::error("the end of an event cannot be written, it is tried again: {}", error.message);
    later_.due = monotonic_now() + later_.retry;
    later_.retry = std::min(later_.retry * 2, limits_.longest_later);
  }
  later_.operations.push_back(std::move(queued));
}

std::optional<Error> CommitQueue::transact(std::vector<Queued*>& batch) {
  const Writer writer = lease_.writer();
  StatementGroup group;
  std::vector<std::pair<Queued*, StatementGroup::Place>> built;
  std::vector<std::pair<Queued*, Error>> unbuilt;
  for (Queued* const queued : batch) {
    queued->writer = writer;
    if (queued->operation.row) {
      built.emplace_back(queued, group.add(queued->operation.row(writer)));
    } else if (auto own = queued->operation.build(writer); own) {
      built.emplace_back(queued, group.add(*std::move(own)));
    } else {
      unbuilt.emplace_back(queued, own.error());
    }
  }
  std::vector<Rows> rows;
  if (!group.empty()) {
    auto committed = connection_->transact(group.take());
    if (!committed) return committed.error();
    rows = *std::move(committed);
  }
  if (later_.operations.empty()) later_.retry = limits_.first_later;
  for (auto& [queued, error] : unbuilt) finish(*queued, fail(error));
  for (auto& [queued, place] : built) {
    const Operation& operation = queued->operation;
    finish(*queued, operation.read ? operation.read(rows, place, writer) : Status());
  }
  return std::nullopt;
}

void CommitQueue::finish(Queued& queued, const Status& status) {
  {
    const MutexLock lock(mutex_);
    pending_.remove(queued.operation.bytes);
  }
  queued.end.tell(status, "not written to the store of the cluster");
}

}  // namespace fairlead::postgres
