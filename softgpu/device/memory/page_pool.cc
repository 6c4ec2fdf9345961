#include "softgpu/device/memory/page_pool.h"

#include <fcntl.h>

#include <algorithm>
#include <span>

#include "softgpu/mutex.h"

namespace softgpu {
namespace {

// Remembers which owners and shares live, so that a pass over the table asks once for each.
class LivenessCache {
 public:
  explicit LivenessCache(const Clients& clients) : clients_(clients), owners_(kMaxClients), shares_(kMaxShares) {}

  bool alive(Owner owner) {
    if (owner.slot >= kMaxClients) return false;
    Known& known = owners_[owner.slot];
    if (known.generation != owner.generation) known = {owner.generation, clients_.alive(owner)};
    return known.alive;
  }
  bool alive(ShareName share) {
    if (share.slot >= kMaxShares) return false;
    Known& known = shares_[share.slot];
    if (known.generation != share.generation) known = {share.generation, clients_.shares().alive(share)};
    return known.alive;
  }
  bool alive(const PageEntry& entry) {
    return entry.kind == PageEntry::Kind::kShared ? alive(entry.share) : alive(entry.owner);
  }

 private:
  struct Known {
    std::uint32_t generation = 0;
    bool alive = false;
  };
  const Clients& clients_;
  std::vector<Known> owners_;
  std::vector<Known> shares_;
};

void append(std::vector<PageRun>& runs, std::uint64_t page) {
  if (!runs.empty() && runs.back().first + runs.back().count == page) {
    ++runs.back().count;
  } else {
    runs.push_back({page, 1});
  }
}

}  // namespace

PagePool::PagePool(Control& control, std::uint64_t page_count, const Clients& clients, int memory_file,
                   std::uint64_t most_pages)
    : control_(control),
      page_count_(page_count),
      clients_(clients),
      memory_file_(memory_file),
      most_pages_(most_pages) {}

// A checkpointed process has no pages, and cannot have new ones until it is restored.
std::vector<PageRun> PagePool::claim(DeviceLock& lock, PageEntry first, std::uint64_t count) {
  const Owner owner = charged_to(first);
  while (true) {
    clients_.wait_while_checkpointed(owner);
    const LockGuard guard(lock);
    if (!is_off_device(clients_.held(owner))) return claim_locked(first, count);
  }
}

std::vector<PageRun> PagePool::claim_locked(PageEntry first, std::uint64_t count) {
  if (most_pages_ != 0 && owned_by(charged_to(first)) + count > most_pages_) return {};
  std::vector<PageRun> runs = find_room(count);
  if (runs.empty()) {
    reap();
    runs = find_room(count);
  }
  if (runs.empty()) {
    evict(count);
    runs = find_room(count);
  }
  for (const PageRun& run : runs) {
    for (std::uint64_t page = run.first; page < run.first + run.count; ++page, ++first.page) {
      control_.pages[page].store(first.pack());
    }
  }
  return runs;
}

void PagePool::collect(DeviceLock& lock) {
  const LockGuard guard(lock);
  reap();
}

// No data is lost with an evictable page: managed memory has its bytes elsewhere.
void PagePool::drop(std::uint64_t page, const PageEntry& entry) {
  std::uint64_t word = entry.pack();
  control_.pages[page].compare_exchange_strong(word, 0);
}

void PagePool::release(const std::vector<PageRun>& runs) {
  for (const PageRun& run : runs) {
    punch(run);  // before the pages are free, or it would erase what the next owner writes
    for (std::uint64_t page = run.first; page < run.first + run.count; ++page) control_.pages[page].store(0);
  }
}

std::vector<PageRun> PagePool::find(const PageEntry& first, std::uint64_t count) const {
  if (count > page_count_ * kPlacesPerPage) return {};  // a count out of shared memory may be anything
  std::vector<std::uint64_t> pages(count, UINT64_MAX);
  std::uint64_t missing = count;
  for (std::uint64_t page = 0, places = place_count(); page < places; ++page) {
    const std::uint64_t word = control_.pages[page].load(std::memory_order_relaxed);
    if (word == 0) continue;
    const PageEntry entry = PageEntry::unpack(word);
    if (entry.kind != first.kind || entry.owner != first.owner || entry.share != first.share) continue;
    if (entry.page < first.page || entry.page - first.page >= count) continue;
    pages[entry.page - first.page] = page;
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
  for (std::uint64_t page = 0, places = place_count(); page < places; ++page) {
    const std::uint64_t word = control_.pages[page].load(std::memory_order_relaxed);
    if (word == 0) continue;
    const PageEntry entry = PageEntry::unpack(word);
    const Owner owner = charged_to(entry);
    if (!liveness.alive(entry) || is_off_device(clients_.held(owner))) continue;
    ++use.total;
    if (liveness.alive(owner)) ++use.by_slot[owner.slot];
  }
  return use;
}

std::uint64_t PagePool::owned_by(Owner owner) const {
  std::uint64_t count = 0;
  for (std::uint64_t page = 0, places = place_count(); page < places; ++page) {
    const std::uint64_t word = control_.pages[page].load(std::memory_order_relaxed);
    if (word != 0 && charged_to(PageEntry::unpack(word)) == owner) ++count;
  }
  return count;
}

Owner PagePool::charged_to(const PageEntry& entry) const {
  return entry.kind == PageEntry::Kind::kShared ? clients_.shares().creator(entry.share) : entry.owner;
}

std::uint64_t PagePool::place_count() const {
  return std::clamp(control_.places_used.load(), page_count_, page_count_ * kPlacesPerPage);
}

std::uint64_t PagePool::room() const {
  return page_count_ - std::min(page_count_, use().total);
}

// REQUIRES: the device lock. While no place beyond the device's pages is used, whatever is free there is room: what is
// not free is at least what is in use.
std::vector<PageRun> PagePool::find_room(std::uint64_t count) {
  if (!clients_.ever_checkpointed()) return find_free(count);
  const std::uint64_t places = place_count();
  const bool spread = places > page_count_;
  if (spread && room() < count) return {};
  std::vector<PageRun> runs = find_free(count);
  if (!runs.empty() || (!spread && room() < count)) return runs;
  control_.places_used.store(std::min(places + count, page_count_ * kPlacesPerPage));
  return find_free(count);
}

// The first run of `count` free pages, else the first free pages anywhere.
std::vector<PageRun> PagePool::find_free(std::uint64_t count) const {
  std::vector<PageRun> runs;
  std::uint64_t found = 0;
  for (std::uint64_t page = 0, places = place_count(); page < places; ++page) {
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

std::uint64_t PagePool::evictable() const {
  std::uint64_t count = 0;
  for (std::uint64_t page = 0, places = place_count(); page < places; ++page) {
    const std::uint64_t word = control_.pages[page].load(std::memory_order_relaxed);
    if (word != 0 && PageEntry::unpack(word).kind == PageEntry::Kind::kEvictable) ++count;
  }
  return count;
}

bool PagePool::can_make_room(std::uint64_t count) const {
  return room() + evictable() >= count;
}

void PagePool::drop_evictable(Owner owner) {
  for (std::uint64_t page = 0, places = place_count(); page < places; ++page) {
    const PageEntry entry = PageEntry::unpack(control_.pages[page].load());
    if (entry.kind == PageEntry::Kind::kEvictable && entry.owner == owner) drop(page, entry);
  }
}

// Takes evictable pages, the oldest first, until there is room for `count`; none when that cannot be reached.
// REQUIRES: the device lock.
void PagePool::evict(std::uint64_t count) {
  struct Candidate {
    std::uint64_t claimed = 0;
    std::uint64_t page = 0;
    std::uint64_t word = 0;
  };
  std::vector<Candidate> candidates;
  std::uint64_t free = 0;
  for (std::uint64_t page = 0, places = place_count(); page < places; ++page) {
    const std::uint64_t word = control_.pages[page].load();
    const PageEntry entry = PageEntry::unpack(word);
    if (word == 0) ++free;
    if (entry.kind == PageEntry::Kind::kEvictable) candidates.push_back({entry.page, page, word});
  }
  if (clients_.ever_checkpointed()) free = room();
  if (free >= count || free + candidates.size() < count) return;
  const auto missing = static_cast<std::ptrdiff_t>(count - free);
  std::nth_element(candidates.begin(), candidates.begin() + missing - 1, candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.claimed < b.claimed; });
  for (Candidate& candidate : std::span(candidates).first(static_cast<std::size_t>(missing))) {
    if (control_.pages[candidate.page].compare_exchange_strong(candidate.word, 0)) control_.evictions.fetch_add(1);
  }
}

// REQUIRES: the device lock. A page whose owner is dead cannot come to life again: a slot's next process has another
// generation.
void PagePool::reap() {
  LivenessCache liveness(clients_);
  for (std::uint64_t page = 0, places = place_count(); page < places; ++page) {
    const std::uint64_t word = control_.pages[page].load();
    if (word == 0) continue;
    if (liveness.alive(PageEntry::unpack(word))) continue;
    punch({page, 1});
    control_.pages[page].store(0);
  }
}

void PagePool::punch(const PageRun& run) {
  ::fallocate(memory_file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(run.first * kPageBytes),
              static_cast<off_t>(run.count * kPageBytes));
}

}  // namespace softgpu
