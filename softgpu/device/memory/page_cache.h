// Mapped pages that nobody uses: what a memory pool keeps between a free and the next allocation. Neighbouring spans
// become one; a request takes the smallest span that holds it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "softgpu/device/memory/page_pool.h"
#include "softgpu/mutex.h"

namespace softgpu {

// Neighbouring pages of addresses and the physical pages mapped there, in order.
struct Span {
  std::uint64_t address = 0;
  std::uint64_t count = 0;
  std::vector<PageRun> runs;
};

class PageCache {
 public:
  // A span of `count` pages; of 0 pages when the cache has none that large. Thread-safe, as is everything here.
  Span take(std::uint64_t count);
  void give(Span span);
  // Takes spans out until at most `keep` pages are left.
  std::vector<Span> trim(std::uint64_t keep);
  std::uint64_t page_count() const;

 private:
  mutable Mutex mutex_;
  std::map<std::uint64_t, Span> spans_ SOFTGPU_GUARDED_BY(mutex_);  // by address
  std::uint64_t count_ SOFTGPU_GUARDED_BY(mutex_) = 0;              // pages in all
};

}  // namespace softgpu
