// The counters of wire/shim_page.h that are about memory. Each is exact when nothing is under way, and never below 0.
// Threads: any.
#pragma once

#include <cstddef>

#include "shim/page.h"

namespace fairlead::shim::memory::accounts {

// Takes `bytes` of what the process may hold; false: that would be past the cap, and nothing has changed.
inline bool reserve(std::size_t bytes) {
  wire::ShimPage& shared = page();
  const std::uint64_t cap = shared.memory_cap.load(std::memory_order_relaxed);
  std::uint64_t held = shared.held.load(std::memory_order_relaxed);
  do {
    if (cap != 0 && (bytes > cap || held > cap - bytes)) return false;
  } while (!shared.held.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
  return true;
}
inline void unreserve(std::size_t bytes) {
  page().held.fetch_sub(bytes, std::memory_order_relaxed);
}

// Device memory was given or given back.
inline void add_resident(std::size_t bytes) {
  page().resident.fetch_add(bytes, std::memory_order_relaxed);
}
inline void drop_resident(std::size_t bytes) {
  page().resident.fetch_sub(bytes, std::memory_order_relaxed);
}
inline void add_away(std::size_t bytes) {
  page().away.fetch_add(bytes, std::memory_order_relaxed);
}
inline void drop_away(std::size_t bytes) {
  page().away.fetch_sub(bytes, std::memory_order_relaxed);
}
inline void add_fixed(std::size_t bytes) {
  page().fixed.fetch_add(bytes, std::memory_order_relaxed);
}
inline void drop_fixed(std::size_t bytes) {
  page().fixed.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace fairlead::shim::memory::accounts
