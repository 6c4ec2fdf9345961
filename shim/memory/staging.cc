#include "shim/memory/staging.h"

#include <unistd.h>

#include "shim/driver.h"

namespace fairlead::shim::memory {

// A contiguous piece of the arena or of the process's memory.
struct Extent {
  char* host = nullptr;
  std::size_t bytes = 0;
  Arena* arena = nullptr;  // nullptr: memory of the process
  StagingPart from_node;
  bool pinned = false;     // by cuMemHostAlloc; else plain pages
  bool shared = false;     // cut into granules; else it is one part
  std::uint64_t used = 0;  // granules, or any bit
  Extent* next = nullptr;
};

namespace {

// The mask of `count` granules. REQUIRES: 0 < count <= 64.
std::uint64_t run_of(std::size_t count) {
  return ~std::uint64_t{0} >> (64 - count);
}

}  // namespace

// ---- The arena ----

bool Arena::map(int descriptor, std::size_t size) {
  void* pages = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (pages == MAP_FAILED) return false;
  registered = static_cast<unsigned char*>(map_pages(size / kChunk + 1));
  if (registered == nullptr) {
    ::munmap(pages, size);
    return false;
  }
  base = static_cast<char*>(pages);
  bytes = size;
  extents = 0;
  return true;
}

void Arena::register_chunks(const char* host, std::size_t size) {
  const auto begin = static_cast<std::size_t>(host - base);
  for (std::size_t chunk = begin / kChunk; chunk * kChunk < begin + size; ++chunk) {
    if (__atomic_exchange_n(&registered[chunk], 1, __ATOMIC_RELAXED) != 0) continue;
    const std::size_t offset = chunk * kChunk;
    const std::size_t length = bytes - offset < kChunk ? bytes - offset : kChunk;
    FAIRLEAD_REAL(cuMemHostRegister_v2)(base + offset, length, CU_MEMHOSTREGISTER_PORTABLE);
  }
}

void Arena::unmap() {
  for (std::size_t chunk = 0; chunk * kChunk < bytes; ++chunk) {
    if (registered[chunk] != 0) FAIRLEAD_REAL(cuMemHostUnregister)(base + chunk * kChunk);
  }
  ::munmap(registered, bytes / kChunk + 1);
  ::munmap(base, bytes);
  *this = Arena();
}

void Staging::use_arena(int descriptor, std::size_t bytes) {
  const Guard guard(lock_);
  arena_ = nullptr;
  if (descriptor < 0) return;
  for (Arena& place : arenas_) {
    if (bytes < kGranule || place.base != nullptr) continue;
    if (place.map(descriptor, bytes)) arena_ = &place;
    break;
  }
  ::close(descriptor);
}

// Those of nodes that are gone, once nothing is in them.
void Staging::drop_old_arenas() {
  const Guard guard(lock_);
  for (Arena& arena : arenas_) {
    if (arena.base != nullptr && &arena != arena_ && arena.extents == 0) arena.unmap();
  }
}

// ---- Extents ----

std::size_t Staging::stretch(const Staged& part, std::size_t at) {
  const std::size_t bytes = part.bytes - at;
  const Arena* arena = part.extent->arena;
  if (arena == nullptr) return bytes;
  const std::size_t left = Arena::kChunk - static_cast<std::size_t>(part.host + at - arena->base) % Arena::kChunk;
  return bytes < left ? bytes : left;
}

bool Staging::obtain_from_node(Extent* extent, std::size_t bytes) {
  const StagingPart part = ask_for_staging(bytes);
  if (part.bytes == 0) return false;
  const Arena& arena = *extent->arena;
  if (part.offset > arena.bytes || part.bytes > arena.bytes - part.offset || part.bytes < bytes) {
    return_staging(part);
    return false;
  }
  extent->from_node = part;
  extent->host = arena.base + part.offset;
  return true;
}

bool Staging::obtain_from_process(Extent* extent, std::size_t bytes) {
  void* host = nullptr;
  extent->pinned = FAIRLEAD_REAL(cuMemHostAlloc)(&host, bytes, CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS;
  if (!extent->pinned) host = map_pages(bytes);
  extent->host = static_cast<char*>(host);
  return host != nullptr;
}

// A new extent of so many bytes, in no list.
Extent* Staging::obtain(std::size_t bytes) {
  Extent* extent = nullptr;
  {
    const Guard guard(lock_);
    extent = pool_.take();
    if (extent == nullptr) return nullptr;
    extent->arena = arena_;
    if (arena_ != nullptr) ++arena_->extents;
  }
  extent->bytes = bytes;
  if (extent->arena != nullptr ? obtain_from_node(extent, bytes) : obtain_from_process(extent, bytes)) return extent;
  const Guard guard(lock_);
  if (extent->arena != nullptr) --extent->arena->extents;
  pool_.give(extent);
  return nullptr;
}

// A part of an extent that is there. REQUIRES: the lock.
Staged Staging::cut(std::size_t granules) {
  const std::size_t bytes = granules * kGranule;
  for (Extent* extent = extents_; extent != nullptr; extent = extent->next) {
    if (extent->arena != arena_) continue;
    if (!extent->shared) {
      if (extent->used != 0 || extent->bytes != bytes) continue;
      extent->used = 1;
      return {extent->host, bytes, extent};
    }
    if (granules > kSharedGranules) continue;
    for (std::size_t at = 0; at + granules <= extent->bytes / kGranule; ++at) {
      const std::uint64_t run = run_of(granules) << at;
      if ((extent->used & run) != 0) continue;
      extent->used |= run;
      return {extent->host + at * kGranule, bytes, extent};
    }
  }
  return {};
}

void Staging::keep(Extent* extent) {
  const Guard guard(lock_);
  extent->next = extents_;
  extents_ = extent;
}

Staged Staging::take(std::size_t bytes, std::size_t soon) {
  const std::size_t granules = bytes / kGranule;
  drop_old_arenas();
  Staged part;
  {
    const Guard guard(lock_);
    part = cut(granules);
  }
  if (part.extent == nullptr) {
    // Where there is not that much left, one by one.
    Extent* extent = nullptr;
    const bool shared = granules <= kSharedGranules / 2;
    const std::size_t together = soon < kSharedGranules * kGranule ? soon : kSharedGranules * kGranule;
    if (shared && together > bytes) extent = obtain(together);
    if (extent == nullptr) {
      drop_idle();
      extent = obtain(bytes);
    }
    if (extent == nullptr) return {};
    extent->shared = shared;
    extent->used = shared ? run_of(granules) : 1;
    keep(extent);
    part = {extent->host, bytes, extent};
  }
  if (part.extent->arena != nullptr) part.extent->arena->register_chunks(part.host, bytes);
  return part;
}

void Staging::give(const Staged& part) {
  Extent* extent = part.extent;
  if (extent == nullptr) return;
  StagingPart back;
  {
    const Guard guard(lock_);
    const auto at = static_cast<std::size_t>(part.host - extent->host) / kGranule;
    extent->used = extent->shared ? extent->used & ~(run_of(part.bytes / kGranule) << at) : 0;
    // Memory of the process stays, for the next time: pinning it is slow.
    if (extent->used != 0 || extent->arena == nullptr) return;
    Extent** link = &extents_;
    while (*link != extent) link = &(*link)->next;
    *link = extent->next;
    --extent->arena->extents;
    // A node that is gone takes nothing back.
    if (extent->arena == arena_) back = extent->from_node;
    pool_.give(extent);
  }
  if (back.bytes != 0) return_staging(back);
}

// Gives up memory of the process that holds nothing: it has the wrong size for what is wanted now.
void Staging::drop_idle() {
  const Guard guard(lock_);
  for (Extent** link = &extents_; *link != nullptr;) {
    Extent* extent = *link;
    if (extent->used != 0 || extent->shared || extent->arena != nullptr) {
      link = &extent->next;
      continue;
    }
    *link = extent->next;
    if (extent->pinned) FAIRLEAD_REAL(cuMemFreeHost)(extent->host);
    if (!extent->pinned) ::munmap(extent->host, extent->bytes);
    pool_.give(extent);
  }
}

}  // namespace fairlead::shim::memory
