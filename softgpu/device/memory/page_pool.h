// The device's physical memory: pages of 2 MiB, claimed by processes and given back when they free them or die.
//
// The page table is the only truth: one word per page names the owner. A claim marks pages under the device lock, a
// release clears them without it, and who finds the device full first clears the pages of the dead. There is no count
// of used pages to drift: it is counted from the table when asked for.
//
// The table has more places than the device has pages (kPlacesPerPage). The pages of a checkpointed process (hold.h)
// keep their places, their content and their mappings, and count as nobody's: so a checkpoint is one store. What others
// claim meanwhile lies in places further back.
//
// Example: of 100 pages A has 60, in places 0 to 59, and is checkpointed. B claims 80, places 60 to 139. A's restore
// needs 60 and finds 20: refused, until B frees 40.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/device/clients.h"
#include "softgpu/device/control.h"
#include "softgpu/device/device_lock.h"

namespace softgpu {

// The page of private memory that lies in no window; beyond any window, so that an IPC look-up never meets it.
inline constexpr std::uint64_t kNoWindowPage = 1ULL << 31;

// A run of neighbouring physical pages.
struct PageRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// Pages in use, by slot of their owner; a share counts for the process that made it. Counts only owners that live.
struct PageUse {
  std::uint64_t total = 0;
  std::vector<std::uint64_t> by_slot;
};

class PagePool {
 public:
  // `page_count` is the part's and not the one in `control`, which other processes can write: it bounds the table.
  // `memory_file` is the descriptor of the device's memory, or -1 for a pool that only reads. `most_pages` is the most
  // an owner who claims may have, 0: any number.
  PagePool(Control& control, std::uint64_t page_count, const Clients& clients, int memory_file,
           std::uint64_t most_pages = 0);

  // Claims `count` pages as `first`, the page after it, and so on: as one run if there is one, else as many as it
  // takes. Who finds too few free reaps the dead, then takes evictable pages, the oldest first. Empty when there are
  // fewer even so, or when the owner would have too many.
  std::vector<PageRun> claim(DeviceLock& lock, PageEntry first, std::uint64_t count);
  // The same for private memory of `owner`, who maps it from `window_page` of its window on.
  std::vector<PageRun> claim(DeviceLock& lock, Owner owner, std::uint64_t window_page, std::uint64_t count) {
    return claim(lock, {PageEntry::Kind::kPrivate, owner, {}, window_page}, count);
  }

  // Gives pages back; their content is gone. REQUIRES: they are the caller's, not evictable and not shared.
  void release(const std::vector<PageRun>& runs);
  // Gives the pages of the dead back, such as those of a share that nobody holds any more.
  void collect(DeviceLock& lock);

  // Whether page `page` still carries `entry`; gives an evictable page back if it does.
  bool holds(std::uint64_t page, const PageEntry& entry) const { return control_.pages[page].load() == entry.pack(); }
  void drop(std::uint64_t page, const PageEntry& entry);

  // The pages claimed as `first` and on, in that order; empty unless all `count` are there.
  std::vector<PageRun> find(const PageEntry& first, std::uint64_t count) const;
  std::vector<PageRun> find(Owner owner, std::uint64_t window_page, std::uint64_t count) const {
    return find({PageEntry::Kind::kPrivate, owner, {}, window_page}, count);
  }

  // Of processes that are not checkpointed.
  PageUse use() const;
  std::uint64_t page_count() const { return page_count_; }

  // For a checkpoint and its end. All REQUIRE the device lock.
  std::uint64_t owned_by(Owner owner) const;
  void drop_evictable(Owner owner);
  // Whether `count` pages can be had, evictable ones included; takes of those as many as it needs.
  bool can_make_room(std::uint64_t count) const;
  void make_room(std::uint64_t count) { evict(count); }

 private:
  // Entries of the table that may be in use.
  std::uint64_t place_count() const;
  // Pages that could be claimed now.
  std::uint64_t room() const;
  std::uint64_t evictable() const;
  std::vector<PageRun> claim_locked(PageEntry first, std::uint64_t count);
  std::vector<PageRun> find_room(std::uint64_t count);
  // Whose use a page counts as: a share's is its creator's.
  Owner charged_to(const PageEntry& entry) const;
  std::vector<PageRun> find_free(std::uint64_t count) const;
  void reap();
  void evict(std::uint64_t count);
  void punch(const PageRun& run);

  Control& control_;
  const std::uint64_t page_count_;
  const Clients& clients_;
  const int memory_file_;
  const std::uint64_t most_pages_;
};

}  // namespace softgpu
