#include "softgpu/device/page_pool.h"

#include <fcntl.h>

#include <algorithm>
#include <mutex>

namespace softgpu {
namespace {

// Remembers which owners live, so that a pass over the table asks once for each.
class LivenessCache {
 public:
  explicit LivenessCache(const Clients& clients) : clients_(clients), known_(kMaxClients) {}

  bool alive(Owner owner) {
    Known& known = known_[owner.slot];
    if (known.generation != owner.generation) known = {owner.generation, clients_.alive(owner)};
    return known.alive;
  }

 private:
  struct Known {
    std::uint32_t generation = 0;
    bool alive = false;
  };
  const Clients& clients_;
  std::vector<Known> known_;
};

void append(std::vector<PageRun>& runs, std::uint64_t page) {
  if (!runs.empty() && runs.back().first + runs.back().count == page) {
    ++runs.back().count;
  } else {
    runs.push_back({page, 1});
  }
}

}  // namespace

PagePool::PagePool(Control& control, const Clients& clients, int memory_file, std::uint64_t most_pages)
    : control_(control), clients_(clients), memory_file_(memory_file), most_pages_(most_pages) {}

std::vector<PageRun> PagePool::claim(DeviceLock& lock, Owner owner, std::uint64_t window_page, std::uint64_t count) {
  const std::lock_guard guard(lock);
  if (most_pages_ != 0 && owned_by(owner) + count > most_pages_) return {};
  std::vector<PageRun> runs = find_free(count);
  if (runs.empty()) {
    reap();
    runs = find_free(count);
  }
  for (const PageRun& run : runs) {
    for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
      control_.pages[page].store(PageEntry{owner, window_page++}.pack());
    }
  }
  return runs;
}

void PagePool::release(const std::vector<PageRun>& runs) {
  for (const PageRun& run : runs) {
    punch(run);  // before the pages are free, or it would erase what the next owner writes
    for (std::uint64_t page = run.first; page < run.first + run.count; ++page) control_.pages[page].store(0);
  }
}

std::vector<PageRun> PagePool::find(Owner owner, std::uint64_t window_page, std::uint64_t count) const {
  std::vector<std::uint64_t> pages(count, UINT64_MAX);
  std::uint64_t missing = count;
  for (std::uint64_t page = 0; page < control_.page_count; ++page) {
    const std::uint64_t word = control_.pages[page].load(std::memory_order_relaxed);
    if (word == 0) continue;
    const PageEntry entry = PageEntry::unpack(word);
    if (entry.owner != owner || entry.window_page < window_page || entry.window_page - window_page >= count) continue;
    pages[entry.window_page - window_page] = page;
    --missing;
  }
  std::vector<PageRun> runs;
  if (missing != 0) return runs;
  for (const std::uint64_t page : pages) append(runs, page);
  return runs;
}

PageUse PagePool::use() const {
  LivenessCache liveness(clients_);
  PageUse use{0, std::vector<std::uint64_t>(kMaxClients)};
  for (std::uint64_t page = 0; page < control_.page_count; ++page) {
    const std::uint64_t word = control_.pages[page].load(std::memory_order_relaxed);
    if (word == 0) continue;
    const Owner owner = PageEntry::unpack(word).owner;
    if (owner.slot >= kMaxClients || !liveness.alive(owner)) continue;
    ++use.total;
    ++use.by_slot[owner.slot];
  }
  return use;
}

std::uint64_t PagePool::owned_by(Owner owner) const {
  std::uint64_t count = 0;
  for (std::uint64_t page = 0; page < control_.page_count; ++page) {
    const std::uint64_t word = control_.pages[page].load(std::memory_order_relaxed);
    if (word != 0 && PageEntry::unpack(word).owner == owner) ++count;
  }
  return count;
}

// The first run of `count` free pages, else the first free pages anywhere.
std::vector<PageRun> PagePool::find_free(std::uint64_t count) const {
  std::vector<PageRun> runs;
  std::uint64_t found = 0;
  for (std::uint64_t page = 0; page < control_.page_count; ++page) {
    if (control_.pages[page].load(std::memory_order_relaxed) != 0) continue;
    append(runs, page);
    ++found;
    if (runs.back().count == count) return {runs.back()};
  }
  if (found < count) return {};
  // Largest runs first: every run costs the process one mapping.
  std::stable_sort(runs.begin(), runs.end(), [](const PageRun& a, const PageRun& b) { return a.count > b.count; });
  std::size_t used = 0;
  for (std::uint64_t left = count; left > 0; ++used) {
    runs[used].count = std::min(runs[used].count, left);
    left -= runs[used].count;
  }
  runs.resize(used);
  return runs;
}

// REQUIRES: the device lock. A page whose owner is dead cannot come to life again: a slot's next process has another
// generation.
void PagePool::reap() {
  LivenessCache liveness(clients_);
  for (std::uint64_t page = 0; page < control_.page_count; ++page) {
    const std::uint64_t word = control_.pages[page].load();
    if (word == 0) continue;
    const Owner owner = PageEntry::unpack(word).owner;
    if (owner.slot < kMaxClients && liveness.alive(owner)) continue;
    punch({page, 1});
    control_.pages[page].store(0);
  }
}

void PagePool::punch(const PageRun& run) {
  ::fallocate(memory_file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(run.first * kPageBytes),
              static_cast<off_t>(run.count * kPageBytes));
}

}  // namespace softgpu
