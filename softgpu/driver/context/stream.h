// A stream: operations that run one after the other, on a thread of its own that is started with the first of them.
//
// Every operation of a stream has a sequence number, and everything that can be waited for is a Point: "stream S has
// completed number n". A stream waiting for an event, an event recorded, the legacy stream waiting for all others: all
// are points in an operation's `after` list. They only name operations submitted earlier, so they cannot form a cycle.
//
// Whoever synchronises with a stream whose thread has not woken up yet runs the operations itself (wait_helping), which
// saves a change of thread on the shortest path: launch, synchronise.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "softgpu/mutex.h"

namespace softgpu {

class Stream;

struct Point {
  std::shared_ptr<Stream> stream;  // keeps a destroyed stream until its work is done
  std::uint64_t sequence = 0;

  bool reached() const;
  void wait() const;
};

struct Operation {
  std::function<void()> run;
  std::vector<Point> after;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  enum class Kind { kLegacy, kBlocking, kNonBlocking };

  // `pending` counts the operations of all streams of a context and outlives the stream.
  Stream(Kind its_kind, int its_priority, std::uint64_t its_id, std::atomic<std::uint64_t>& pending)
      : kind(its_kind), priority(its_priority), id(its_id), pending_(pending) {}

  const Kind kind;
  const int priority;
  const std::uint64_t id;

  // Attributes that a program gave the stream, by number; hints, opaque here.
  struct Hints {
    Mutex mutex;
    std::map<int, std::array<char, 64>> values SOFTGPU_GUARDED_BY(mutex);
  } hints;

  // Appends an operation; returns its sequence number. Thread-safe, never blocks on work.
  std::uint64_t submit(Operation operation);
  std::uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  std::uint64_t completed() const { return completed_.load(std::memory_order_acquire); }
  bool idle() const { return completed() == submitted(); }
  Point last() { return {shared_from_this(), submitted()}; }

  // Blocks until `sequence` is completed; the helping form may run operations on the calling thread.
  void wait(std::uint64_t sequence);
  void wait_helping(std::uint64_t sequence);

  // No more operations are expected; the thread ends after those submitted. One that comes nevertheless, from a thread
  // that knew the stream, is executed as any other.
  void close();
  void reopen();

 private:
  // The stream's thread: it is started with the first operation, and waits for work_ while it is asleep.
  enum class Worker { kNone, kAwake, kAsleep };

  void work();
  void drain(std::uint64_t until) SOFTGPU_REQUIRES(mutex_);
  bool has_work() const SOFTGPU_REQUIRES(mutex_) { return !queue_.empty() && !draining_; }
  bool is_over() const SOFTGPU_REQUIRES(mutex_) { return closed_ && queue_.empty(); }
  bool spin_for_work() const;

  std::atomic<std::uint64_t>& pending_;
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> completed_{0};

  Mutex mutex_;
  ConditionVariable work_;
  ConditionVariable done_;
  std::deque<Operation> queue_ SOFTGPU_GUARDED_BY(mutex_);
  unsigned waiters_ SOFTGPU_GUARDED_BY(mutex_) = 0;
  Worker worker_ SOFTGPU_GUARDED_BY(mutex_) = Worker::kNone;
  bool draining_ SOFTGPU_GUARDED_BY(mutex_) = false;  // some thread runs the operations
  bool closed_ SOFTGPU_GUARDED_BY(mutex_) = false;
};

}  // namespace softgpu
