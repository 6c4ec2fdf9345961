// All memory of this process that can move: the heaps of its contexts, and which region contains an address.
//
// One lock guards the structure and is held across no wait, and no driver call but those of a grant to a peer. A region that a call works on outside
// the lock is kept from others by its state (residency_state.h), or by being in no list.
//
// Freeing waits until the device is idle, as the driver's own does: what reuses the memory may start at once. While a
// stream is under capture nothing may wait, so freed memory is set aside until the next free that can.
#pragma once

#include <cstddef>

#include "shim/memory/backing.h"
#include "shim/memory/memory.h"
#include "shim/memory/region_index.h"

namespace fairlead::shim::memory {

class Space {
 public:
  static constexpr unsigned kMostContexts = 64;

  constexpr Space() = default;
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  // Before the first allocation. Without a back end everything is left to the driver.
  void set_backing(const Backing* backing) { backing_ = backing; }
  const Backing* backing() const { return backing_; }
  Staging& staging() { return staging_; }

  // The heap of a context that may allocate here; nullptr: leave it to the driver. REQUIRES: the context is current.
  Heap* heap_of(CUcontext context);
  // Memory of other contexts may be in use by its work. False: there are too many.
  bool know(CUcontext context);

  CUresult allocate(Heap& heap, std::size_t bytes, CUdeviceptr* address);
  // kDone: `*freed` bytes are counted no more. kNotOurs: no region contains the address.
  Freed free(CUdeviceptr address, std::size_t* freed, CUresult* result);
  bool find(CUdeviceptr address, Range* range);
  void pin(CUdeviceptr address);
  CUresult grant(CUcontext owner, CUdevice device);
  // How many bytes were allocated in it. REQUIRES: within a Passage, so that nothing moves.
  std::size_t forget(CUcontext context);

  // Freed memory that is still mapped goes back to the device; how much.
  std::size_t drop_cached();

  // ---- For the moves (swap.cc), under lock() where a list or state is read or changed ----
  Lock& lock() FL_RETURN_CAPABILITY(lock_) { return lock_; }
  Heap* heaps() { return heaps_; }
  // While anything is away, new allocations are made away too: they hold no contents and need no device memory yet.
  void set_away(bool away) FL_REQUIRES(lock_) { away_ = away; }
  bool is_away() {
    const Guard guard(lock_);
    return away_;
  }
  // The driver's part, with the counting. Not under the lock.
  CUresult map(Region& region);
  CUresult unmap(Region& region);
  // Memory, staging and address go back, whichever it has.
  void dispose(Region* region);

 private:
  Heap* known(CUcontext context);
  void prepare(Heap& heap, CUcontext context);
  CUresult make_region(Heap& heap, std::size_t bytes, Region** made);
  CUresult map_making_room(Region& region);
  CUresult publish(Heap& heap, Region* region) FL_REQUIRES(lock_);
  CUresult allocate_small(Heap& heap, std::size_t bytes, CUdeviceptr* address);
  CUresult allocate_large(Heap& heap, std::size_t bytes, CUdeviceptr* address);
  std::size_t footprint(CUdevice device) FL_REQUIRES(lock_);
  Region* new_region(Heap& heap, std::size_t bytes);
  Region* take_cached(Heap& heap, std::size_t bytes) FL_REQUIRES(lock_);
  struct Going {
    Region* region = nullptr;
    Block* block = nullptr;  // nullptr: the region is one allocation
    std::size_t bytes = 0;
  };
  Freed begin_free(CUdeviceptr address, Going* going) FL_REQUIRES(lock_);
  void end_free(const Going& going, bool settled, Region** goes) FL_REQUIRES(lock_);
  void give_block(Heap& heap, Block* block, Region** goes) FL_REQUIRES(lock_);
  void give_region(Heap& heap, Region* region, Region** goes) FL_REQUIRES(lock_);
  void give_waiting(Heap& heap, Region** goes) FL_REQUIRES(lock_);
  void retire(Heap& heap, Region* region, Region** goes) FL_REQUIRES(lock_);
  bool cache(Heap& heap, Region* region, Region** goes) FL_REQUIRES(lock_);
  void uncache(Heap& heap, Region* region) FL_REQUIRES(lock_);
  void retire_slab(Heap& heap, Slab* slab, Region** goes) FL_REQUIRES(lock_);
  void dispose_all(Region* regions);
  void set_mapped(Region& region, bool mapped);
  void dispose_dead(Region* region);
  void discard(Region* region);

  const Backing* backing_ = nullptr;
  Staging staging_;
  RegionIndex index_;  // read without the lock

  Lock lock_;
  bool away_ FL_GUARDED_BY(lock_) = false;
  Pool<Region> pool_ FL_GUARDED_BY(lock_);
  // Not said to be guarded: known() looks for a context without the lock, and a region that a move works on leads to its
  // heap. What of a heap the lock guards stands in region.h.
  Heap heaps_[kMostContexts];
};

// The process's.
Space& space();

}  // namespace fairlead::shim::memory
