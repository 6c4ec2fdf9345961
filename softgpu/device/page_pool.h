// The device's physical memory: pages of 2 MiB, claimed by processes and given back when they free them or die.
//
// The page table is the only truth: one word per page names the owner. A claim marks pages under the device lock, a
// release clears them without it, and who finds the device full first clears the pages of the dead. There is no count
// of used pages to drift: it is counted from the table when asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/device/clients.h"
#include "softgpu/device/control.h"
#include "softgpu/device/device_lock.h"

namespace softgpu {

// A run of neighbouring physical pages.
struct PageRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// Pages in use, by slot of their owner. Counts only owners that live.
struct PageUse {
  std::uint64_t total = 0;
  std::vector<std::uint64_t> by_slot;
};

class PagePool {
 public:
  // `memory_file` is the descriptor of the device's memory, or -1 for a pool that only reads. `most_pages` is the most
  // an owner who claims may have, 0: any number.
  PagePool(Control& control, const Clients& clients, int memory_file, std::uint64_t most_pages = 0);

  // Claims `count` pages for `owner`, who maps them from `window_page` of its window on: as one run if there is one,
  // else as many as it takes. Empty when fewer are free, even after reaping the dead, or when the owner would have too
  // many.
  std::vector<PageRun> claim(DeviceLock& lock, Owner owner, std::uint64_t window_page, std::uint64_t count);

  // Gives pages back; their content is gone.
  void release(const std::vector<PageRun>& runs);

  // The pages that `owner` maps at `window_page` and on, in window order; empty unless all `count` are there.
  std::vector<PageRun> find(Owner owner, std::uint64_t window_page, std::uint64_t count) const;

  PageUse use() const;
  std::uint64_t page_count() const { return control_.page_count; }

 private:
  std::uint64_t owned_by(Owner owner) const;
  std::vector<PageRun> find_free(std::uint64_t count) const;
  void reap();
  void punch(const PageRun& run);

  Control& control_;
  const Clients& clients_;
  const int memory_file_;
  const std::uint64_t most_pages_;
};

}  // namespace softgpu
