#include "softgpu/device/memory/heap.h"

#include <bit>
#include <numeric>

#include "softgpu/mutex.h"

namespace softgpu {
namespace {

std::size_t class_of(std::uint64_t bytes) {
  const std::uint64_t units = (bytes + Heap::kAlignment - 1) / Heap::kAlignment;
  if (units <= 1) return 0;
  const auto octave = static_cast<std::size_t>(std::bit_width(units - 1)) - 1;  // 2^octave < units <= 2^(octave + 1)
  const bool lower_half = octave > 0 && units <= 3ULL << (octave - 1);
  return 2 * octave + (lower_half ? 0 : 1);
}

std::uint64_t block_bytes_of(std::size_t size_class) {
  if (size_class == 0) return Heap::kAlignment;
  const std::size_t octave = size_class / 2;
  return Heap::kAlignment * (size_class % 2 == 0 ? 3ULL << (octave - 1) : 2ULL << octave);
}

std::uint64_t pages_for(std::uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes;
}

}  // namespace

Heap::HeapSlab::HeapSlab(std::size_t c) : Slab(block_bytes_of(c)), size_class(c) {
  free_all();
}

void Heap::HeapSlab::free_all() {
  for (auto& size : sizes) size.store(0, std::memory_order_release);
  free.resize(sizes.size());
  std::iota(free.rbegin(), free.rend(), 0U);  // low blocks are handed out first
}

Heap::IdleSlabs& Heap::idle_slabs() {
  static auto* instance = new IdleSlabs;
  return *instance;
}

Heap::Heap(Window& window, PagePool& pool, DeviceLock& lock, Faults faults, Owner owner)
    : window_(window),
      pool_(pool),
      lock_(lock),
      faults_(faults),
      name_{PageEntry::Kind::kPrivate, owner, {}, 0},
      keeps_pages_(false),
      limit_pages_(UINT64_MAX) {
  open();
}

Heap::Heap(Window& window, PagePool& pool, DeviceLock& lock, Faults faults, const PageEntry& name,
           std::uint64_t limit_pages)
    : window_(window),
      pool_(pool),
      lock_(lock),
      faults_(faults),
      name_(name),
      keeps_pages_(true),
      limit_pages_(limit_pages) {}

void Heap::open() {
  const LockGuard guard(mutex_);
  closed_ = false;
  if (!keeps_pages_ && spare_ == nullptr) spare_ = open_slab(0);
}

void Heap::close() {
  {
    const LockGuard guard(mutex_);
    closed_ = true;
    close_slabs();
    for (const auto& [address, large] : large_) {
      window_.remove_extent(address, large.bytes);
      return_pages(address - address % kPageBytes, large.page_count, large.runs);
    }
    large_.clear();
  }
  trim(0);
}

// Takes all slabs off their pages, whatever they hold, and lets other heaps have them.
void Heap::close_slabs() {
  IdleSlabs& idle = idle_slabs();
  for (HeapSlab* slab : slabs_) {
    const std::uint64_t base = slab->base.load();
    if (base != 0) {
      window_.set_slab(base, nullptr);
      return_pages(base, 1, slab->runs);
    }
    slab->base.store(0);
    slab->heap.store(nullptr);
    slab->free_all();
    const LockGuard guard(idle.mutex);
    idle.slabs[slab->size_class].push_back(slab);
  }
  slabs_.clear();
  open_ = {};
  unused_ = {};
  spare_ = nullptr;  // one of them
}

std::uint64_t Heap::unused_page_count() {
  const LockGuard guard(mutex_);
  return cache_.page_count() + (spare_ != nullptr ? 1 : 0);
}

void Heap::trim(std::uint64_t keep) {
  const std::uint64_t used = page_count() - unused_page_count();
  {
    const LockGuard guard(mutex_);
    if (spare_ != nullptr && page_count() > keep) {
      Span span = {spare_->base, 1, spare_->runs};
      close_slab(spare_);
      spare_ = nullptr;
      cache_.give(std::move(span));
    }
  }
  for (const Span& span : cache_.trim(keep > used ? keep - used : 0)) unmap_pages(span.address, span.count, span.runs);
}

std::uint64_t Heap::allocate(std::uint64_t bytes) {
  // A pool tries a request several times, and asks once itself.
  if (!keeps_pages_ && faults_.take_allocation_failure()) return 0;
  const LockGuard guard(mutex_);
  if (closed_) return 0;
  return bytes <= kSlabLimit ? allocate_small(bytes) : allocate_large(bytes);
}

bool Heap::release(std::uint64_t address) {
  Large large;
  {
    const LockGuard guard(mutex_);
    if (auto* slab = static_cast<HeapSlab*>(window_.slab_at(address)); slab != nullptr) {
      const std::uint64_t offset = address - slab->base;
      const std::uint64_t block = offset / slab->block_bytes;
      if (slab->heap != this || offset % slab->block_bytes != 0 || block >= slab->sizes.size() ||
          slab->sizes[block].load() == 0) {
        return false;
      }
      release_small(slab, address);
      return true;
    }
    const auto found = large_.find(address);
    if (found == large_.end()) return false;
    large = std::move(found->second);
    large_.erase(found);
  }
  // Without the lock: this calls the system and touches nothing that mutex_ guards.
  window_.remove_extent(address, large.bytes);
  return_pages(address - address % kPageBytes, large.page_count, large.runs);
  return true;
}

std::uint64_t Heap::adopt(const std::vector<PageRun>& runs, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t count = pages_for(offset + bytes);
  const std::uint64_t first = window_.take_addresses(count);
  if (first == 0) return 0;
  if (!window_.map(first, runs)) {
    return_pages(first, count, {});
    return 0;
  }
  const std::uint64_t address = first + offset;
  const LockGuard guard(mutex_);
  if (closed_) {
    return_pages(first, count, {});
    return 0;
  }
  window_.add_extent(address, bytes);
  large_[address] = {bytes, count, {}, true};
  return address;
}

bool Heap::owns(std::uint64_t address) {
  const auto* slab = static_cast<HeapSlab*>(window_.slab_at(address));
  if (slab != nullptr) return slab->heap == this && window_.find(address).begin == address;
  const LockGuard guard(mutex_);
  return large_.contains(address);
}

bool Heap::adopted(std::uint64_t address) {
  const LockGuard guard(mutex_);
  const auto found = large_.find(address);
  return found != large_.end() && found->second.adopted;
}

std::uint64_t Heap::allocate_large(std::uint64_t bytes) {
  Large large{bytes, pages_for(bytes), {}, false};
  const std::uint64_t address = claim_pages(large.page_count, large.runs);
  if (address == 0) return 0;
  window_.add_extent(address, bytes);
  large_[address] = std::move(large);
  return address;
}

std::uint64_t Heap::allocate_small(std::uint64_t bytes) {
  const std::size_t size_class = class_of(bytes);
  HeapSlab* slab = open_[size_class].empty() ? open_slab(size_class) : open_[size_class].back();
  if (slab == nullptr) return 0;
  if (slab == spare_) spare_ = nullptr;
  const std::uint32_t block = slab->free.back();
  slab->free.pop_back();
  if (slab->free.empty()) {
    open_[size_class][slab->place] = open_[size_class].back();
    open_[size_class][slab->place]->place = slab->place;
    open_[size_class].pop_back();
  }
  slab->sizes[block].store(static_cast<std::uint32_t>(bytes), std::memory_order_release);
  return slab->base + block * slab->block_bytes;
}

void Heap::release_small(HeapSlab* slab, std::uint64_t address) {
  const auto block = static_cast<std::uint32_t>((address - slab->base) / slab->block_bytes);
  slab->sizes[block].store(0, std::memory_order_release);
  window_.invalidate();
  auto& open = open_[slab->size_class];
  if (slab->free.empty()) {
    slab->place = open.size();
    open.push_back(slab);
  }
  slab->free.push_back(block);
  if (!slab->empty()) return;
  if (spare_ == nullptr) {
    spare_ = slab;
  } else {
    const std::uint64_t base = slab->base;
    const std::vector<PageRun> runs = slab->runs;
    close_slab(slab);
    return_pages(base, 1, runs);
  }
}

// A slab of this class with all blocks free: on the spare slab's page if there is one, else on a new page.
Heap::HeapSlab* Heap::open_slab(std::size_t size_class) {
  std::uint64_t base = 0;
  std::vector<PageRun> runs;
  if (spare_ != nullptr) {
    base = spare_->base;
    runs = std::move(spare_->runs);
    close_slab(spare_);
    spare_ = nullptr;
  } else {
    base = claim_pages(1, runs);
  }
  if (base == 0) return nullptr;
  HeapSlab* slab = take_slab(size_class);
  slab->base = base;
  slab->runs = std::move(runs);
  slab->place = open_[size_class].size();
  open_[size_class].push_back(slab);
  window_.set_slab(base, slab);
  return slab;
}

// An object without a page: of this heap, else one that another heap left, else a new one.
Heap::HeapSlab* Heap::take_slab(std::size_t size_class) {
  HeapSlab* slab = nullptr;
  const auto take_from = [&](std::vector<HeapSlab*>& slabs) {
    if (slab != nullptr || slabs.empty()) return;
    slab = slabs.back();
    slabs.pop_back();
  };
  take_from(unused_[size_class]);
  if (slab != nullptr) return slab;
  {
    IdleSlabs& idle = idle_slabs();
    const LockGuard guard(idle.mutex);
    take_from(idle.slabs[size_class]);
  }
  if (slab == nullptr) slab = new HeapSlab(size_class);
  slab->heap.store(this);
  slabs_.push_back(slab);
  return slab;
}

// Takes an empty slab off its page.
void Heap::close_slab(HeapSlab* slab) {
  window_.set_slab(slab->base, nullptr);
  auto& open = open_[slab->size_class];
  open[slab->place] = open.back();
  open[slab->place]->place = slab->place;
  open.pop_back();
  slab->base = 0;
  unused_[slab->size_class].push_back(slab);
}

std::uint64_t Heap::claim_pages(std::uint64_t count, std::vector<PageRun>& runs) {
  if (Span kept = cache_.take(count); kept.count != 0) {
    runs = std::move(kept.runs);
    return kept.address;
  }
  if (count > limit_pages_ || page_count() > limit_pages_ - count) return 0;
  const std::uint64_t address = window_.take_addresses(count);
  if (address == 0) return 0;
  PageEntry first = name_;
  first.page = window_.window_page(address);
  runs = pool_.claim(lock_, first, count);
  if (!runs.empty()) pages_.fetch_add(count);
  if (!runs.empty() && window_.map(address, runs)) return address;
  unmap_pages(address, count, runs);
  return 0;
}

// Adopted pages have no runs here and are never kept.
void Heap::return_pages(std::uint64_t address, std::uint64_t count, const std::vector<PageRun>& runs) {
  if (keeps_pages_ && !runs.empty()) {
    cache_.give({address, count, runs});
  } else {
    unmap_pages(address, count, runs);
  }
}

void Heap::unmap_pages(std::uint64_t address, std::uint64_t count, const std::vector<PageRun>& runs) {
  window_.unmap(address, count);
  free_pages(runs);
  window_.return_addresses(address, count);
}

void Heap::free_pages(const std::vector<PageRun>& runs) {
  for (const PageRun& run : runs) pages_.fetch_sub(run.count);
  pool_.release(runs);
}

}  // namespace softgpu
