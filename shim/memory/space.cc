#include "shim/memory/space.h"

#include "shim/capture.h"
#include "shim/driver.h"
#include "shim/memory/accounts.h"
#include "shim/room.h"

namespace fairlead::shim::memory {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 46;  // more than any device has
constexpr unsigned kMostCached = 16;

// Puts a region in front of a list of those that go.
void chain(Region** list, Region* region) {
  region->next_moving = *list;
  *list = region;
}

// Waits until the context's work is done. NOT_READY: a capture forbids waiting.
CUresult settle(CUcontext context) {
  if (capturing()) return CUDA_ERROR_NOT_READY;
  CUcontext current = nullptr;
  FAIRLEAD_REAL(cuCtxGetCurrent)(&current);
  if (current == context) return FAIRLEAD_REAL(cuCtxSynchronize)();
  CUresult result = FAIRLEAD_REAL(cuCtxPushCurrent_v2)(context);
  if (result != CUDA_SUCCESS) return result;
  result = FAIRLEAD_REAL(cuCtxSynchronize)();
  FAIRLEAD_REAL(cuCtxPopCurrent_v2)(&current);
  return result;
}

void count_away(Region& region, bool away) {
  if (region.counted_away == away) return;
  region.counted_away = away;
  away ? accounts::add_away(region.bytes) : accounts::drop_away(region.bytes);
}

}  // namespace

// ---- Allocating ----

// Bytes of all regions of a device, wherever they are.
std::size_t Space::footprint(CUdevice device) {
  std::size_t bytes = 0;
  for (Heap& heap : heaps_) {
    if (heap.device != device) continue;
    bytes += heap.cached_bytes + heap.stuck_bytes;
    for (const Region* region = heap.regions.first(); region != nullptr; region = region->next) bytes += region->bytes;
  }
  return bytes;
}

Region* Space::new_region(Heap& heap, std::size_t bytes) {
  const Guard guard(lock_);
  // What is allocated away asks no device whether there is room, but it must fit when everything returns.
  const bool fits = !away_ || !backing_->staged || footprint(heap.device) + bytes <= heap.device_bytes;
  Region* region = fits ? pool_.take() : nullptr;
  if (region == nullptr) return nullptr;
  region->heap = &heap;
  region->bytes = bytes;
  region->state.mapped = false;
  if (away_) region->state = {.residency = Residency::kAway, .empty = true, .mapped = false};
  return region;
}

// A region of so many bytes that belongs to nobody yet.
CUresult Space::make_region(Heap& heap, std::size_t bytes, Region** made) {
  {
    const Guard guard(lock_);
    *made = take_cached(heap, bytes);
  }
  if (*made != nullptr) return CUDA_SUCCESS;
  Region* region = new_region(heap, bytes);
  if (region == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = backing_->reserve(*region);
  if (result == CUDA_SUCCESS && region->state.residency == Residency::kResident) {
    result = map_making_room(*region);
    if (result != CUDA_SUCCESS) backing_->release(*region);
  }
  if (result == CUDA_SUCCESS) {
    *made = region;
    return CUDA_SUCCESS;
  }
  const Guard guard(lock_);
  pool_.give(region);
  return result;
}

CUresult Space::map_making_room(Region& region) {
  const CUresult result = map(region);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  drop_cached();
  return making_room(region.bytes, [&] { return map(region); });
}

CUresult Space::map(Region& region) {
  CUmemAccessDesc access[kMostAccessors];
  unsigned accessors = 0;
  {
    const Guard guard(lock_);
    accessors = region.heap->accessors;
    for (unsigned i = 0; i < accessors; ++i) access[i] = region.heap->access[i];
    region.access_version = region.heap->access_version;
  }
  const CUresult result = backing_->map(region, access, accessors);
  if (result == CUDA_SUCCESS) set_mapped(region, true);
  return result;
}

// Into the heap and the index. The lock is let go of and taken again where access was granted meanwhile.
CUresult Space::publish(Heap& heap, Region* region) {
  while (region->state.mapped && region->access_version != heap.access_version) {
    region->access_version = heap.access_version;
    CUmemAccessDesc access[kMostAccessors];
    const unsigned accessors = heap.accessors;
    for (unsigned i = 0; i < accessors; ++i) access[i] = heap.access[i];
    const Unlock unlock(lock_);
    const CUresult result = backing_->set_access(*region, access, accessors);
    if (result != CUDA_SUCCESS) return result;
  }
  if (!index_.insert(region)) return CUDA_ERROR_OUT_OF_MEMORY;
  heap.regions.append(region);
  return CUDA_SUCCESS;
}

CUresult Space::allocate_small(Heap& heap, std::size_t bytes, CUdeviceptr* address) {
  const Guard guard(lock_);
  for (;;) {
    if (Block* block = heap.slabs.take(bytes)) {
      const Slab* slab = Slab::of(block);
      if (slab->region->next != nullptr) {
        heap.regions.remove(slab->region);
        heap.regions.append(slab->region);
      }
      *address = slab->address_of(block);
      return CUDA_SUCCESS;
    }
    Region* region = nullptr;
    CUresult result = CUDA_SUCCESS;
    {
      const Unlock unlock(lock_);
      result = make_region(heap, kGranule, &region);
    }
    if (result != CUDA_SUCCESS) return result;
    result = publish(heap, region);
    if (result == CUDA_SUCCESS) region->slab = heap.slabs.add(region->start, region);
    if (result == CUDA_SUCCESS && region->slab != nullptr) continue;
    if (result == CUDA_SUCCESS) {
      index_.remove(region);
      heap.regions.remove(region);
    }
    const Unlock unlock(lock_);
    dispose(region);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

CUresult Space::allocate_large(Heap& heap, std::size_t bytes, CUdeviceptr* address) {
  Region* region = nullptr;
  const CUresult result = make_region(heap, round_up(bytes, kGranule), &region);
  if (result != CUDA_SUCCESS) return result;
  {
    const Guard guard(lock_);
    region->asked = bytes;
    region->going = false;
    if (publish(heap, region) == CUDA_SUCCESS) {
      *address = region->start;
      return CUDA_SUCCESS;
    }
  }
  dispose(region);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Space::allocate(Heap& heap, std::size_t bytes, CUdeviceptr* address) {
  if (bytes <= kLargestSmall) return allocate_small(heap, bytes, address);
  return bytes > kMostBytes ? CUDA_ERROR_OUT_OF_MEMORY : allocate_large(heap, bytes, address);
}

// ---- Freeing ----

// Marks what starts at the address as going, so that nobody else frees it.
Freed Space::begin_free(CUdeviceptr address, Going* going) {
  Region* region = index_.find(address);
  if (region == nullptr) return Freed::kNotOurs;
  going->region = region;
  if (region->slab == nullptr) {
    if (region->start != address || region->going) return Freed::kFailed;
    going->bytes = region->asked;
    region->going = true;
    return Freed::kDone;
  }
  Block* block = region->slab->find(address);
  if (block == nullptr || region->slab->address_of(block) != address) return Freed::kFailed;
  going->block = block;
  going->bytes = block->asked;
  block->going = 1;
  return Freed::kDone;
}

void Space::end_free(const Going& going, bool settled, Region** goes) {
  Heap& heap = *going.region->heap;
  if (settled) {
    give_waiting(heap, goes);
    going.block != nullptr ? give_block(heap, going.block, goes) : give_region(heap, going.region, goes);
  } else if (going.block != nullptr) {
    going.block->next = heap.waiting_blocks;
    heap.waiting_blocks = going.block;
  } else {
    chain(&heap.waiting_regions, going.region);
  }
}

Freed Space::free(CUdeviceptr address, std::size_t* freed, CUresult* result) {
  if (index_.find(address) == nullptr) return Freed::kNotOurs;
  Going going;
  CUcontext context = nullptr;
  {
    const Guard guard(lock_);
    const Freed begun = begin_free(address, &going);
    *result = CUDA_ERROR_INVALID_VALUE;
    if (begun != Freed::kDone) return begun;
    context = going.region->heap->context.load(std::memory_order_relaxed);
  }
  *result = settle(context);
  const bool waits = *result == CUDA_ERROR_NOT_READY;
  Region* goes = nullptr;
  {
    const Guard guard(lock_);
    if (*result != CUDA_SUCCESS && !waits) {
      (going.block != nullptr ? going.block->going = 0 : going.region->going = false);
      return Freed::kFailed;
    }
    end_free(going, !waits, &goes);
  }
  dispose_all(goes);
  *freed = going.bytes;
  *result = CUDA_SUCCESS;
  return Freed::kDone;
}

// What was freed while a capture was in progress.
void Space::give_waiting(Heap& heap, Region** goes) {
  while (Block* block = heap.waiting_blocks) {
    heap.waiting_blocks = block->next;
    give_block(heap, block, goes);
  }
  while (Region* region = heap.waiting_regions) {
    heap.waiting_regions = region->next_moving;
    give_region(heap, region, goes);
  }
}

void Space::give_block(Heap& heap, Block* block, Region** goes) {
  Slab* slab = Slab::of(block);
  heap.slabs.give(block);
  if (slab->used != 0 || slab == heap.empty_slab) return;
  Slab* before = heap.empty_slab;
  heap.empty_slab = slab;
  if (before != nullptr && before->used == 0) retire_slab(heap, before, goes);
}

void Space::retire_slab(Heap& heap, Slab* slab, Region** goes) {
  Region* region = slab->region;
  heap.slabs.remove(slab);
  region->slab = nullptr;
  retire(heap, region, goes);
}

void Space::give_region(Heap& heap, Region* region, Region** goes) {
  if (cache(heap, region, goes)) return;
  retire(heap, region, goes);
}

// Out of the heap; it goes now, or when the move that works on it is done.
void Space::retire(Heap& heap, Region* region, Region** goes) {
  index_.remove(region);
  heap.regions.remove(region);
  const RegionStep next = step(region->state, RegionEvent::kFreed);
  region->state = next.state;
  if (next.action == RegionAction::kDispose) chain(goes, region);
}

bool Space::cache(Heap& heap, Region* region, Region** goes) {
  const bool stays = region->state.residency == Residency::kResident && !region->state.fixed &&
                     region->bytes <= heap.cache_limit && !away_;
  if (!stays) return false;
  index_.remove(region);
  heap.regions.remove(region);
  heap.cached.append(region);
  heap.cached_bytes += region->bytes;
  ++heap.cached_count;
  while (heap.cached_bytes > heap.cache_limit || heap.cached_count > kMostCached) {
    Region* oldest = heap.cached.first();
    uncache(heap, oldest);
    chain(goes, oldest);
  }
  return true;
}

void Space::uncache(Heap& heap, Region* region) {
  heap.cached.remove(region);
  heap.cached_bytes -= region->bytes;
  --heap.cached_count;
}

Region* Space::take_cached(Heap& heap, std::size_t bytes) {
  for (Region* region = heap.cached.first(); region != nullptr; region = region->next) {
    if (region->bytes != bytes) continue;
    uncache(heap, region);
    region->asked = 0;
    region->going = false;
    return region;
  }
  return nullptr;
}

std::size_t Space::drop_cached() {
  Region* goes = nullptr;
  std::size_t bytes = 0;
  {
    const Guard guard(lock_);
    for (Heap& heap : heaps_) {
      while (Region* region = heap.cached.first()) {
        uncache(heap, region);
        chain(&goes, region);
        bytes += region->bytes;
      }
      for (Region* region = heap.regions.first(); region != nullptr;) {
        Region* next = region->next;
        const bool idle = region->slab != nullptr && region->slab->used == 0;
        if (idle && region->state.mapped && !region->state.moving() && !region->state.fixed) {
          if (heap.empty_slab == region->slab) heap.empty_slab = nullptr;
          bytes += region->bytes;
          retire_slab(heap, region->slab, &goes);
        }
        region = next;
      }
    }
  }
  dispose_all(goes);
  return bytes;
}

// ---- The driver's part; not under the lock ----

CUresult Space::unmap(Region& region) {
  const CUresult result = backing_->unmap(region);
  if (result == CUDA_SUCCESS) set_mapped(region, false);
  return result;
}

// Others may pin or free the region at this moment.
void Space::set_mapped(Region& region, bool mapped) {
  const Guard guard(lock_);
  region.state.mapped = mapped;
  mapped ? accounts::add_resident(region.bytes) : accounts::drop_resident(region.bytes);
  count_away(region, !mapped && region.state.residency != Residency::kGone);
}

void Space::dispose(Region* region) {
  // Memory that cannot be unmapped stays counted, and its address is never used again.
  if (region->state.mapped && unmap(*region) != CUDA_SUCCESS) {
    const Guard guard(lock_);
    region->heap->stuck_bytes += region->bytes;
  } else {
    backing_->release(*region);
  }
  discard(region);
}

// Its context is gone.
void Space::dispose_dead(Region* region) {
  if (!backing_->of_context) return dispose(region);
  if (region->state.mapped) accounts::drop_resident(region->bytes);
  discard(region);
}

// What is left of a region that has neither memory nor address.
void Space::discard(Region* region) {
  if (region->state.fixed) accounts::drop_fixed(region->bytes);
  count_away(*region, false);
  staging_.give(region->staged);
  const Guard guard(lock_);
  pool_.give(region);
}

void Space::dispose_all(Region* regions) {
  while (regions != nullptr) {
    Region* region = regions;
    regions = region->next_moving;
    dispose(region);
  }
}

}  // namespace fairlead::shim::memory
