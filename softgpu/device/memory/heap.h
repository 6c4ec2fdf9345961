// The allocator of one context or memory pool: cuMemAlloc in terms of pages and window addresses.
//
// Up to kSlabLimit a request takes a block of a slab: a 2 MiB page cut into equal blocks of one of 24 sizes, two per
// octave (256, 512, 768, 1024, 1536, ... 1 MiB). Above, whole pages of its own. One empty slab is kept, taken when the
// heap is made, so that a program that allocates and frees one small block in a loop does not call the system.
//
// Example: 300 bytes take a block of 512 bytes whose recorded size is 300, so an access to byte 300 is caught.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "softgpu/device/faults.h"
#include "softgpu/device/memory/page_cache.h"
#include "softgpu/device/memory/window.h"
#include "softgpu/mutex.h"

namespace softgpu {

class Heap {
 public:
  static constexpr std::uint64_t kSlabLimit = 1ULL << 20;
  static constexpr std::uint64_t kAlignment = 256;

  Heap(Window& window, PagePool& pool, DeviceLock& lock, Faults faults, Owner owner);
  // For a memory pool: pages are claimed in the name of `name` (its page number is not looked at), at most
  // `limit_pages` of them, and kept when they are not used any more, until trim().
  Heap(Window& window, PagePool& pool, DeviceLock& lock, Faults faults, const PageEntry& name,
       std::uint64_t limit_pages);
  ~Heap() { close(); }
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Gives everything back that is still allocated. Nothing can be allocated until open(), and nothing is owned: threads
  // that know the heap may go on calling. A new heap is open. Thread-safe.
  void close();
  void open();

  // The address of `bytes` > 0 bytes, aligned to kAlignment, or 0 when the device is full. Thread-safe.
  std::uint64_t allocate(std::uint64_t bytes);
  // Frees what allocate() or adopt() returned; false when `address` is no such address. Thread-safe. Waits for nobody:
  // a kernel that runs and uses the memory finds scratch memory in its place, or error 700 (Window::unmap).
  bool release(std::uint64_t address);
  // Maps pages that another process owns, of which `bytes` from `offset` on become an allocation here. Its address, or
  // 0 when the window is exhausted.
  std::uint64_t adopt(const std::vector<PageRun>& runs, std::uint64_t offset, std::uint64_t bytes);

  // Whether `address` begins an allocation of this heap, and whether of adopt().
  bool owns(std::uint64_t address);
  bool adopted(std::uint64_t address);

  // Pages claimed, and those of them that hold no allocation.
  std::uint64_t page_count() const { return pages_.load(); }
  std::uint64_t unused_page_count();
  // Gives unused pages back while more than `keep` pages are claimed. Thread-safe.
  void trim(std::uint64_t keep);

 private:
  struct Large {
    std::uint64_t bytes = 0;
    std::uint64_t page_count = 0;
    std::vector<PageRun> runs;  // own pages
    bool adopted = false;
  };
  // A slab and its free blocks. Objects are used again, by any heap, and never deleted: lookups take no lock.
  struct HeapSlab : Slab {
    explicit HeapSlab(std::size_t size_class);
    void free_all();
    std::atomic<Heap*> heap{nullptr};
    const std::size_t size_class;
    std::vector<PageRun> runs;
    std::vector<std::uint32_t> free;  // block indices
    std::size_t place = 0;            // in open_[size_class]
    bool empty() const { return free.size() == sizes.size(); }
  };
  static constexpr std::size_t kClasses = 24;
  struct IdleSlabs {
    Mutex mutex;
    std::array<std::vector<HeapSlab*>, kClasses> slabs SOFTGPU_GUARDED_BY(mutex);
  };
  static IdleSlabs& idle_slabs();

  std::uint64_t allocate_large(std::uint64_t bytes) SOFTGPU_REQUIRES(mutex_);
  std::uint64_t allocate_small(std::uint64_t bytes) SOFTGPU_REQUIRES(mutex_);
  HeapSlab* open_slab(std::size_t size_class) SOFTGPU_REQUIRES(mutex_);
  HeapSlab* take_slab(std::size_t size_class) SOFTGPU_REQUIRES(mutex_);
  void close_slab(HeapSlab* slab) SOFTGPU_REQUIRES(mutex_);
  void close_slabs() SOFTGPU_REQUIRES(mutex_);
  void release_small(HeapSlab* slab, std::uint64_t address) SOFTGPU_REQUIRES(mutex_);
  std::uint64_t claim_pages(std::uint64_t count, std::vector<PageRun>& runs);
  void return_pages(std::uint64_t address, std::uint64_t count, const std::vector<PageRun>& runs);
  void unmap_pages(std::uint64_t address, std::uint64_t count, const std::vector<PageRun>& runs);
  void free_pages(const std::vector<PageRun>& runs);

  Window& window_;
  PagePool& pool_;
  DeviceLock& lock_;
  Faults faults_;
  const PageEntry name_;
  const bool keeps_pages_;
  const std::uint64_t limit_pages_;
  PageCache cache_;
  std::atomic<std::uint64_t> pages_{0};

  Mutex mutex_;
  bool closed_ SOFTGPU_GUARDED_BY(mutex_) = false;
  std::unordered_map<std::uint64_t, Large> large_ SOFTGPU_GUARDED_BY(mutex_);
  std::array<std::vector<HeapSlab*>, kClasses> open_ SOFTGPU_GUARDED_BY(mutex_);    // slabs in use with a free block
  std::array<std::vector<HeapSlab*>, kClasses> unused_ SOFTGPU_GUARDED_BY(mutex_);  // objects without a page
  std::vector<HeapSlab*> slabs_ SOFTGPU_GUARDED_BY(mutex_);                         // all objects
  HeapSlab* spare_ SOFTGPU_GUARDED_BY(mutex_) = nullptr;  // the one empty slab that is kept, also in open_
};

}  // namespace softgpu
