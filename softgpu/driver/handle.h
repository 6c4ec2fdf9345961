// Handles for objects that programs create and destroy. The shell a handle points to is never given back to the
// system, so that using a destroyed handle is an error (INVALID_HANDLE) and not a crash; shells are reused.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "softgpu/mutex.h"

namespace softgpu {

template <typename Shell>
class HandlePool {
 public:
  // A shell marked valid. Its other fields are as its last user left them.
  static Shell* take() {
    Shell* shell = nullptr;
    {
      HandlePool& pool = instance();
      const LockGuard guard(pool.mutex_);
      if (pool.free_.empty()) {
        shell = new Shell;
        pool.all_.push_back(shell);
      } else {
        shell = pool.free_.back();
        pool.free_.pop_back();
      }
    }
    shell->magic.store(Shell::kMagic, std::memory_order_release);
    return shell;
  }

  static bool valid(const Shell* shell) {
    return shell != nullptr && shell->magic.load(std::memory_order_acquire) == Shell::kMagic;
  }

  // A valid shell for which `wanted` holds, or null. Looks at all of them.
  template <typename Wanted>
  static Shell* find(Wanted wanted) {
    HandlePool& pool = instance();
    const LockGuard guard(pool.mutex_);
    for (Shell* shell : pool.all_) {
      if (valid(shell) && wanted(*shell)) return shell;
    }
    return nullptr;
  }

  // Marks the handle invalid; false when it was already.
  static bool give_back(Shell* shell) {
    std::uint32_t expected = Shell::kMagic;
    if (!shell->magic.compare_exchange_strong(expected, 0)) return false;
    HandlePool& pool = instance();
    const LockGuard guard(pool.mutex_);
    pool.free_.push_back(shell);
    return true;
  }

 private:
  static HandlePool& instance() {
    static auto* pool = new HandlePool;  // outlives the threads of streams
    return *pool;
  }

  Mutex mutex_;
  std::vector<Shell*> free_ SOFTGPU_GUARDED_BY(mutex_);
  std::vector<Shell*> all_ SOFTGPU_GUARDED_BY(mutex_);  // keeps every shell reachable
};

}  // namespace softgpu
