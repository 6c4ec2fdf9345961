// A mutex that clang can follow: std::mutex and its guards say nothing of what they lock. The cost is theirs.
//
//   Mutex mutex_;
//   ConditionVariable wake_;
//   std::deque<Job> jobs_ FL_GUARDED_BY(mutex_);
//
//   const MutexLock lock(mutex_);
//   while (jobs_.empty()) wake_.wait(mutex_);
//
// Waiting is a loop, not a predicate: the analysis does not know that a lambda is called with the lock held.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/thread_annotations.h"

namespace fairlead {

class FL_CAPABILITY("mutex") Mutex {
 public:
  void lock() FL_ACQUIRE() { mutex_.lock(); }
  void unlock() FL_RELEASE() { mutex_.unlock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

class [[nodiscard]] FL_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) FL_ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
  ~MutexLock() FL_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class ConditionVariable {
 public:
  // May return without reason, as may the next.
  void wait(Mutex& mutex) FL_REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    (void)held.release();  // it is the caller's
  }
  // False: the time has come.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point deadline) FL_REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    const bool woken = condition_.wait_until(held, deadline) == std::cv_status::no_timeout;
    (void)held.release();
    return woken;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace fairlead
