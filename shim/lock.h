// A mutex without a constructor, and its guard. Not for the launch path.
#pragma once

#include <pthread.h>

#include "base/thread_annotations.h"

namespace fairlead::shim {

class FL_CAPABILITY("mutex") Lock {
 public:
  constexpr Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  void lock() FL_ACQUIRE() { ::pthread_mutex_lock(&mutex_); }
  void unlock() FL_RELEASE() { ::pthread_mutex_unlock(&mutex_); }
  // In the child of a fork, where whoever held it is not there; nor is anybody else, so what it guards may be set anew.
  void reset() FL_ASSERT_CAPABILITY() { mutex_ = PTHREAD_MUTEX_INITIALIZER; }
  pthread_mutex_t* native() { return &mutex_; }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class [[nodiscard]] FL_SCOPED_CAPABILITY Guard {
 public:
  explicit Guard(Lock& lock) FL_ACQUIRE(lock) : lock_(lock) { lock.lock(); }
  ~Guard() FL_RELEASE() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace fairlead::shim
