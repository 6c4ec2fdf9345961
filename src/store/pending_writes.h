// What the two writers' threads (group_commit.h, postgres/commit_queue.h) do alike: count what waits against limits, and tell who asked.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fairlead::store {

struct PendingLimits {
  std::size_t operations = 10'000;
  std::size_t bytes = 64 << 20;
};

// Operations that were submitted and are not over. Threads: its owner's lock.
class PendingWrites {
 public:
  PendingWrites(PendingLimits limits, std::string awaited) : limits_(limits), awaited_(std::move(awaited)) {}

  // kResourceExhausted names what is waited for, the numbers and the limits.
  Status room_for(std::size_t bytes) const;
  void add(std::size_t bytes);
  void remove(std::size_t bytes);  // REQUIRES: it was added
  std::size_t operations() const { return operations_; }

 private:
  const PendingLimits limits_;
  const std::string awaited_;  // "the disk"
  std::size_t operations_ = 0, bytes_ = 0;
};

// Who is told how an operation ended: a callback on the io_context, whose run() it keeps from returning until then; one on the thread that
// calls tell(); or nobody, and a failure is logged.
class WriteEnd {
 public:
  using Done = std::function<void(Status)>;

  WriteEnd() = default;
  static WriteEnd on(boost::asio::io_context& io, Done done);  // an empty one: nobody
  static WriteEnd here(Done done);

  // Once. `failure`: what the log says before the reason.
  void tell(const Status& status, std::string_view failure);

 private:
  using WorkGuard = boost::asio::executor_work_guard<boost::asio::io_context::executor_type>;
  Done done_;
  std::optional<WorkGuard> guard_;  // none: here
};

}  // namespace fairlead::store
