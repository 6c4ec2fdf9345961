#include "softgpu/driver/context/stream.h"

#include <thread>
#include <utility>

#include "softgpu/device/time/busy_meter.h"
#include "softgpu/driver/operation_scope.h"
#include "softgpu/driver/process.h"
#include "softgpu/mutex.h"

namespace softgpu {
namespace {

// A thread that ran out of work looks for more this long before it sleeps, so that a burst of launches wakes it once.
constexpr std::uint64_t kSpinNs = 20'000;

// An operation is under way from its submission to its end.
void note_begin() {
  if (Process* process = Process::get()) process->gate().add();
}
void note_end() {
  if (Process* process = Process::get()) process->gate().leave();
}

}  // namespace

bool Point::reached() const {
  return stream == nullptr || stream->completed() >= sequence;
}

void Point::wait() const {
  if (stream != nullptr) stream->wait(sequence);
}

std::uint64_t Stream::submit(Operation operation) {
  pending_.fetch_add(1);
  note_begin();
  const LockGuard guard(mutex_);
  queue_.push_back(std::move(operation));
  const std::uint64_t sequence = submitted_.fetch_add(1, std::memory_order_release) + 1;
  if (worker_ == Worker::kNone) {
    worker_ = Worker::kAwake;
    std::thread([self = shared_from_this()] { self->work(); }).detach();
  } else if (worker_ == Worker::kAsleep && !draining_) {
    work_.notify_one();
  }
  return sequence;
}

void Stream::wait(std::uint64_t sequence) {
  if (completed() >= sequence) return;
  const LockGuard guard(mutex_);
  ++waiters_;
  while (completed() < sequence) done_.wait(mutex_);
  --waiters_;
}

void Stream::wait_helping(std::uint64_t sequence) {
  if (completed() >= sequence) return;
  const LockGuard guard(mutex_);
  ++waiters_;
  while (completed() < sequence) {
    if (!draining_ && !queue_.empty()) {
      drain(sequence);
    } else {
      done_.wait(mutex_);
    }
  }
  --waiters_;
}

void Stream::close() {
  const LockGuard guard(mutex_);
  closed_ = true;
  work_.notify_one();
}

void Stream::reopen() {
  const LockGuard guard(mutex_);
  closed_ = false;
}

void Stream::work() {
  const LockGuard guard(mutex_);
  while (true) {
    if (has_work()) drain(UINT64_MAX);
    if (is_over()) {
      worker_ = Worker::kNone;
      return;
    }
    // While a synchronising thread runs the operations there is nothing to look for: it wakes this one if it leaves any.
    if (!draining_) {
      mutex_.unlock();
      const bool more = spin_for_work();
      mutex_.lock();
      if (more && !draining_) continue;
    }
    worker_ = Worker::kAsleep;
    while (!has_work() && !is_over()) work_.wait(mutex_);
    worker_ = Worker::kAwake;
  }
}

bool Stream::spin_for_work() const {
  const std::uint64_t end = monotonic_ns() + kSpinNs;
  while (idle()) {
    if (monotonic_ns() >= end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Runs operations in order, up to and including `until`. mutex_ is let go of while one runs. REQUIRES: nobody drains.
void Stream::drain(std::uint64_t until) {
  draining_ = true;
  while (!queue_.empty() && completed_.load(std::memory_order_relaxed) < until) {
    Operation operation = std::move(queue_.front());
    queue_.pop_front();
    mutex_.unlock();
    for (const Point& point : operation.after) point.wait();
    {
      const OperationScope scope;
      operation.run();
      operation = {};  // what it held may be released before anyone sees it completed
    }
    note_end();
    mutex_.lock();
    pending_.fetch_sub(1);  // first: who sees the operation completed may rely on an idle context
    completed_.fetch_add(1, std::memory_order_release);
    if (waiters_ != 0) done_.notify_all();
  }
  draining_ = false;
  if (!queue_.empty()) {
    work_.notify_one();
    if (waiters_ != 0) done_.notify_all();
  }
}

}  // namespace softgpu
