// The control segment of a device: everything its client processes share besides the memory itself. Only atomic words,
// each valid by itself, so that a process may die between any two instructions.
#pragma once

#include <atomic>
#include <cstdint>

#include "softgpu/device/memory/shares.h"
#include "softgpu/device/owner.h"

namespace softgpu {

inline constexpr std::uint64_t kPageBytes = 2ULL << 20;
inline constexpr unsigned kBusyBuckets = 64;
// Places in the device's file for each page that it has: those of checkpointed processes take a place, and no capacity.
inline constexpr std::uint64_t kPlacesPerPage = 8;

// Free, or claimed: by whom and as which page.
//   kPrivate    a process's memory, at page `page` of its window
//   kEvictable  a process's managed memory, which anyone may take; `page` counts the claims, so the smallest is oldest
//   kShared     page `page` of a share
struct PageEntry {
  enum class Kind : std::uint8_t { kPrivate = 0, kEvictable = 1, kShared = 2 };
  static constexpr unsigned kKindShift = 62;
  static constexpr unsigned kOwnerBits = 30;

  Kind kind = Kind::kPrivate;
  Owner owner;      // kPrivate, kEvictable
  ShareName share;  // kShared
  std::uint64_t page = 0;

  std::uint64_t pack() const {
    const std::uint64_t name =
        kind == Kind::kShared ? page << ShareName::kBits | share.pack() : page << kOwnerBits | owner.pack();
    return static_cast<std::uint64_t>(kind) << kKindShift | (name & ((1ULL << kKindShift) - 1));
  }
  static PageEntry unpack(std::uint64_t word) {
    const auto kind = static_cast<Kind>(word >> kKindShift);
    const std::uint64_t name = word & ((1ULL << kKindShift) - 1);
    if (kind == Kind::kShared) return {kind, {}, ShareName::unpack(name), name >> ShareName::kBits};
    return {kind, Owner::unpack(name & ((1U << kOwnerBits) - 1)), {}, name >> kOwnerBits};
  }
};

struct BusyBucket {
  std::atomic<std::uint64_t> index;  // which bucket of time this is
  std::atomic<std::uint64_t> busy_ns;
  std::atomic<std::uint64_t> bytes;
};

enum class Direction { kToDevice, kFromDevice };

// What a client does on the device (Activity). Each slot's words are written by the process that owns the slot only.
struct ClientActivity {
  std::atomic<std::uint32_t> owner;       // Owner::pack of the process the other words belong to
  std::atomic<std::uint32_t> sm_share;    // SMs it may use
  std::atomic<std::uint32_t> mps;         // 0: takes turns, 1: an MPS client, 2: one of below-normal priority
  std::atomic<std::uint32_t> contexts;    // of an MPS client
  std::atomic<std::uint32_t> connected;   // to the MPS server: 1 + the shared faults until then; 0: has made no context
  std::atomic<std::uint32_t> kernels;     // running now
  std::atomic<std::uint32_t> sms_wanted;  // by them, in all
  std::atomic<std::uint32_t> copies[2];   // under way over the link, by Direction
  std::atomic<std::uint64_t> memory_limit;  // bytes; 0: none
  // Modelled time so far, of each kernel and copy as if it had the client's share for itself.
  std::atomic<std::uint64_t> kernel_count;
  std::atomic<std::uint64_t> kernel_ns;
  std::atomic<std::uint64_t> copy_count;
  std::atomic<std::uint64_t> copy_ns;
};

// A process with contexts on the device, by slot (Users).
struct User {
  std::atomic<std::uint32_t> owner;     // Owner::pack, 0: none
  std::atomic<std::uint64_t> since_ns;  // computing since then; 0: not now
  std::atomic<std::uint64_t> window;
  std::atomic<std::uint64_t> busy_ns;
  std::atomic<std::uint64_t> busy_before_ns;
};

struct Control {
  static constexpr std::uint64_t kMagic = 0x346C7274636F6773;  // "sgoctrl4"

  std::uint64_t magic;
  std::uint64_t page_count;  // how many can be in use

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

  // Injected faults (Faults), and the last fault that MPS clients share: count << 32 | CUresult.
  alignas(64) std::atomic<std::uint64_t> xid;  // count << 32 | number
  std::atomic<std::uint32_t> lost;
  std::atomic<std::uint32_t> hung;
  std::atomic<std::uint64_t> failing_allocations;
  std::atomic<std::uint32_t> link_factor_milli;
  std::atomic<std::uint64_t> mps_fault;

  alignas(64) std::atomic<std::uint32_t> activity_count;  // slots above were never used
  ClientActivity activity[kMaxClients];

  User users[kMaxClients];
  // Managed memory: pages that migrated to the device so far, and those of them taken away for want of room.
  alignas(64) std::atomic<std::uint64_t> migrations;
  std::atomic<std::uint64_t> evictions;

  std::atomic<std::uint64_t> places_used;  // beyond page_count: entries from here on were never used

  // page_count x kPlacesPerPage; PageEntry::pack, 0 when free.
  alignas(64) std::atomic<std::uint64_t> pages[];

  static std::size_t bytes(std::uint64_t pages) {
    return sizeof(Control) + pages * kPlacesPerPage * sizeof(std::uint64_t);
  }
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace softgpu
