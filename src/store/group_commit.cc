#include "store/group_commit.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <future>

#include "base/check.h"
#include "base/log.h"

namespace fairlead::store {

GroupCommit::GroupCommit(boost::asio::io_context& io, std::unique_ptr<Database> database, GroupCommitLimits limits,
                         Committed committed)
    : io_(io), database_(std::move(database)), limits_(limits), committed_(std::move(committed)), writer_([this] {
        run();
      }) {}

GroupCommit::~GroupCommit() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  writer_.join();
}

void GroupCommit::submit(Apply apply, std::size_t bytes, Admission admission, Done done) {
  if (admission == Admission::kRefusable) {
    if (Status room = has_room_for(bytes); !room) {
      boost::asio::post(io_, [done = std::move(done), error = std::move(room.error())] {
        if (done) done(fail(error));
      });
      return;
    }
  }
  Operation operation{.apply = std::move(apply), .bytes = bytes, .done = std::move(done), .done_here = {}, .guard = {}};
  if (operation.done) operation.guard.emplace(io_.get_executor());
  enqueue(std::move(operation));
}

Status GroupCommit::run_and_wait(Apply apply) {
  // Shared: the writer's thread may still be inside set_value() when the waiter has already returned.
  auto promise = std::make_shared<std::promise<Status>>();
  Done done_here = [promise](Status status) { promise->set_value(std::move(status)); };
  enqueue({.apply = std::move(apply), .bytes = 0, .done = {}, .done_here = std::move(done_here), .guard = {}});
  return promise->get_future().get();
}

std::size_t GroupCommit::pending() const {
  const MutexLock lock(mutex_);
  return pending_operations_;
}

Status GroupCommit::has_room_for(std::size_t bytes) const {
  const MutexLock lock(mutex_);
  if (pending_operations_ < limits_.pending_operations && pending_bytes_ + bytes <= limits_.pending_bytes) return {};
  return fail(Errc::kResourceExhausted,
              "{} writes with {} bytes wait for the disk, the limits are {} and {}: retry later", pending_operations_,
              pending_bytes_, limits_.pending_operations, limits_.pending_bytes);
}

void GroupCommit::enqueue(Operation operation) {
  {
    const MutexLock lock(mutex_);
    ++pending_operations_;
    pending_bytes_ += operation.bytes;
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
    // Below zero the limits would refuse every write from then on.
    FL_CHECK(pending_operations_ > 0 && pending_bytes_ >= operation.bytes, "{} operations, {} bytes, of this one {}",
             pending_operations_, pending_bytes_, operation.bytes);
    --pending_operations_;
    pending_bytes_ -= operation.bytes;
  }
  if (operation.done_here) return operation.done_here(status);
  if (operation.done) {
    boost::asio::post(io_, [done = std::move(operation.done), status] { done(status); });
    operation.guard.reset();
  } else if (!status) {
    spdlog::error("state not saved: {}", status.error().message);
  }
}

}  // namespace fairlead::store
