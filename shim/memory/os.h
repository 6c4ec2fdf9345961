// What this folder needs of the system, without libstdc++: pages, objects that are never moved.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "shim/lock.h"

namespace fairlead::shim::memory {

inline constexpr std::size_t kGranule = std::size_t{2} << 20;  // of device memory, of staging

constexpr std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// Lets go of a lock for a call that may take long.
class [[nodiscard]] FL_SCOPED_CAPABILITY Unlock {
 public:
  explicit Unlock(Lock& lock) FL_RELEASE(lock) : lock_(lock) { lock.unlock(); }
  ~Unlock() FL_RELEASE() { lock_.lock(); }
  Unlock(const Unlock&) = delete;
  Unlock& operator=(const Unlock&) = delete;

 private:
  Lock& lock_;
};

// Zeroed memory that costs nothing until it is touched; nullptr when the system has none.
inline void* map_pages(std::size_t bytes) {
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

// The same, at a multiple of its own size. REQUIRES: a power of two, of whole pages.
inline void* map_aligned(std::size_t bytes) {
  auto* raw = static_cast<char*>(map_pages(2 * bytes));
  if (raw == nullptr) return nullptr;
  const std::size_t before = (bytes - reinterpret_cast<std::uintptr_t>(raw) % bytes) % bytes;
  if (before != 0) ::munmap(raw, before);
  ::munmap(raw + before + bytes, bytes - before);
  return raw + before;
}

// Objects of one type in pages that are never given back, so that a reader without a lock never reads unmapped memory.
// Not thread-safe.
template <typename T>
class Pool {
 public:
  // A value-initialised object; nullptr when the system has no memory.
  T* take() {
    if (free_ == nullptr && !grow()) return nullptr;
    Slot* slot = free_;
    free_ = slot->next;
    return new (slot->storage) T();
  }
  void give(T* object) {
    Slot* slot = reinterpret_cast<Slot*>(object);
    slot->next = free_;
    free_ = slot;
  }

 private:
  union Slot {
    Slot* next;
    alignas(T) unsigned char storage[sizeof(T)];
  };
  bool grow() {
    constexpr std::size_t kBytes = 64 << 10;
    auto* slots = static_cast<Slot*>(map_pages(kBytes));
    if (slots == nullptr) return false;
    for (std::size_t i = kBytes / sizeof(Slot); i-- > 0;) {
      slots[i].next = free_;
      free_ = &slots[i];
    }
    return true;
  }
  Slot* free_ = nullptr;
};

}  // namespace fairlead::shim::memory
