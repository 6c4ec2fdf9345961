#include "store/group_commit.h"

#include <algorithm>
#include <future>

namespace fairlead::store {

GroupCommit::GroupCommit(boost::asio::io_context& io, std::unique_ptr<Database> database, GroupCommitLimits limits,
                         Committed committed)
    : io_(io),
      database_(std::move(database)),
      limits_(limits),
      committed_(std::move(committed)),
      pending_(limits.pending, "the disk"),
      writer_([this] { run(); }) {}

GroupCommit::~GroupCommit() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  writer_.join();
}

void GroupCommit::submit(Apply apply, std::size_t bytes, Admission admission, Done done) {
  Status room;
  if (admission == Admission::kRefusable) {
    const MutexLock lock(mutex_);
    room = pending_.room_for(bytes);
  }
  if (!room && !done) return;
  WriteEnd end = WriteEnd::on(io_, std::move(done));
  if (!room) return end.tell(room, "");
  enqueue({.apply = std::move(apply), .bytes = bytes, .end = std::move(end)});
}

Status GroupCommit::run_and_wait(Apply apply) {
  // Shared: the writer's thread may still be inside set_value() when the waiter has already returned.
  auto promise = std::make_shared<std::promise<Status>>();
  WriteEnd end = WriteEnd::here([promise](Status status) { promise->set_value(std::move(status)); });
  enqueue({.apply = std::move(apply), .bytes = 0, .end = std::move(end)});
  return promise->get_future().get();
}

std::size_t GroupCommit::pending() const {
  const MutexLock lock(mutex_);
  return pending_.operations();
}

void GroupCommit::enqueue(Operation operation) {
  {
    const MutexLock lock(mutex_);
    pending_.add(operation.bytes);
    queue_.push_back(std::move(operation));
  }
  wake_.notify_one();
}

void GroupCommit::run() {
  while (true) {
    std::vector<Operation> batch = next_batch();
    if (batch.empty()) return;
    commit(batch);
  }
}

std::vector<GroupCommit::Operation> GroupCommit::next_batch() {
  const MutexLock lock(mutex_);
  while (!stopping_ && queue_.empty()) wake_.wait(mutex_);
  std::vector<Operation> batch;
  batch.reserve(std::min(queue_.size(), limits_.batch_operations));
  while (!queue_.empty() && batch.size() < limits_.batch_operations) {
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return batch;
}

void GroupCommit::commit(std::vector<Operation>& batch) {
  Status together = transact(batch, 0, batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    bool alone = !together && batch.size() > 1;
    finish(batch[i], alone ? transact(batch, i, 1) : together);
  }
}

Status GroupCommit::transact(std::vector<Operation>& batch, std::size_t first, std::size_t count) {
  Status status = database_->run("BEGIN IMMEDIATE");
  for (std::size_t i = first; status && i < first + count; ++i) status = batch[i].apply(*database_);
  if (status) status = database_->run("COMMIT");
  if (status && committed_) committed_(*database_);
  // A full disk may have rolled the transaction back already.
  if (!status && database_->in_transaction()) (void)database_->run("ROLLBACK").has_value();
  return status;
}

void GroupCommit::finish(Operation& operation, const Status& status) {
  {
    const MutexLock lock(mutex_);
    pending_.remove(operation.bytes);
  }
  operation.end.tell(status, "state not saved");
}

}  // namespace fairlead::store
