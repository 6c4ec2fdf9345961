// Locks that clang can follow (thread_annotations.h): those of std say nothing of what they lock. The cost is theirs.
//
//   Mutex mutex_;
//   std::map<int, Shape> shapes_ SOFTGPU_GUARDED_BY(mutex_);
//
//   const LockGuard guard(mutex_);
//
// Waiting is a loop around wait(), not a predicate: the analysis does not know that a lambda is called with the lock held.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include "softgpu/thread_annotations.h"

namespace softgpu {

class SOFTGPU_CAPABILITY("mutex") Mutex {
 public:
  void lock() SOFTGPU_ACQUIRE() { mutex_.lock(); }
  void unlock() SOFTGPU_RELEASE() { mutex_.unlock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

// Many read or one writes.
class SOFTGPU_CAPABILITY("mutex") SharedMutex {
 public:
  void lock() SOFTGPU_ACQUIRE() { mutex_.lock(); }
  void unlock() SOFTGPU_RELEASE() { mutex_.unlock(); }
  void lock_shared() SOFTGPU_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() SOFTGPU_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// Of a Mutex, a SharedMutex to write, or a DeviceLock.
template <typename Lock>
class [[nodiscard]] SOFTGPU_SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Lock& lock) SOFTGPU_ACQUIRE(lock) : lock_(lock) { lock.lock(); }
  ~LockGuard() SOFTGPU_RELEASE() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

// Of a SharedMutex, to read.
class [[nodiscard]] SOFTGPU_SCOPED_CAPABILITY ReadGuard {
 public:
  explicit ReadGuard(SharedMutex& lock) SOFTGPU_ACQUIRE_SHARED(lock) : lock_(lock) { lock.lock_shared(); }
  ~ReadGuard() SOFTGPU_RELEASE() { lock_.unlock_shared(); }
  ReadGuard(const ReadGuard&) = delete;
  ReadGuard& operator=(const ReadGuard&) = delete;

 private:
  SharedMutex& lock_;
};

class ConditionVariable {
 public:
  // May return without reason, as may the next.
  void wait(Mutex& mutex) SOFTGPU_REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    (void)held.release();  // it is the caller's
  }
  void wait_for(Mutex& mutex, std::chrono::milliseconds most) SOFTGPU_REQUIRES(mutex) {
    std::unique_lock held(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(held, most);
    (void)held.release();
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace softgpu
