// The control segment of a device: everything its client processes share besides the memory itself. Only atomic words,
// each valid by itself, so that a process may die between any two instructions.
#pragma once

#include <atomic>
#include <cstdint>

#include "softgpu/device/owner.h"

namespace softgpu {

inline constexpr std::uint64_t kPageBytes = 2ULL << 20;
inline constexpr unsigned kBusyBuckets = 64;

// Free, or owned: who, and at which page of the owner's window.
struct PageEntry {
  static constexpr unsigned kOwnerBits = 30;
  Owner owner;
  std::uint64_t window_page = 0;

  std::uint64_t pack() const { return window_page << kOwnerBits | owner.pack(); }
  static PageEntry unpack(std::uint64_t word) {
    return {Owner::unpack(word & ((1U << kOwnerBits) - 1)), word >> kOwnerBits};
  }
};

struct BusyBucket {
  std::atomic<std::uint64_t> index;  // which bucket of time this is
  std::atomic<std::uint64_t> busy_ns;
  std::atomic<std::uint64_t> bytes;
};

struct Control {
  static constexpr std::uint64_t kMagic = 0x316C7274636F6773;  // "sgoctrl1"

  std::uint64_t magic;
  std::uint64_t page_count;

  alignas(64) std::atomic<std::uint32_t> lock;  // DeviceLock

  // The turn (Turn): who computes, and who waits with which ticket; written under the lock.
  alignas(64) std::atomic<std::uint32_t> turn_holder;
  std::atomic<std::uint32_t> turn_waiters;  // a hint for the holder, recounted at each hand-over
  std::atomic<std::uint64_t> next_ticket;
  std::atomic<std::uint64_t> tickets[kMaxClients];
  std::atomic<std::uint32_t> ticket_owners[kMaxClients];

  // Statistics (BusyMeter): written by the holder of the turn.
  alignas(64) std::atomic<std::uint64_t> busy_since_ns;
  std::atomic<std::uint64_t> busy_total_ns;
  BusyBucket buckets[kBusyBuckets];

  alignas(64) std::atomic<std::uint64_t> pages[];  // page_count of them; PageEntry::pack, 0 when free

  static std::size_t bytes(std::uint64_t pages) { return sizeof(Control) + pages * sizeof(std::uint64_t); }
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace softgpu
