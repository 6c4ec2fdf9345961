// A region is what moves as one: a large allocation, or a slab of small ones. A heap is the memory of one context.
#pragma once

#ifndef CUDA_ABI_EXACT_NAMES
#define CUDA_ABI_EXACT_NAMES
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "abi/cuda.h"
#include "shim/memory/residency_state.h"
#include "shim/memory/slab.h"
#include "shim/memory/staging.h"

namespace fairlead::shim::memory {

struct Heap;

struct Region {
  CUdeviceptr start = 0;
  std::size_t bytes = 0;  // whole granules
  std::size_t asked = 0;  // of the one allocation; 0 for a slab
  Heap* heap = nullptr;
  Slab* slab = nullptr;  // nullptr: one allocation
  RegionState state;
  bool going = false;           // the program has freed it; not yet given back
  unsigned access_version = 0;  // of the heap's access list that its mapping has
  CUdeviceptr reserved = 0;     // what the back end reserved or allocated, where it is not `start`
  Staged staged;                // where its contents are while they are not on the device
  bool counted_away = false;    // in the accounts
  bool failed = false;          // a part of its copy could not be started

  Region* next = nullptr;  // in one of its heap's lists
  Region* previous = nullptr;
  Region* next_moving = nullptr;  // in a move's list, or of those that wait to be given back
};

// Doubly linked through the regions themselves.
class RegionList {
 public:
  Region* first() const { return first_; }
  void append(Region* region) {
    region->next = nullptr;
    region->previous = last_;
    (last_ != nullptr ? last_->next : first_) = region;
    last_ = region;
  }
  void remove(Region* region) {
    (region->previous != nullptr ? region->previous->next : first_) = region->next;
    (region->next != nullptr ? region->next->previous : last_) = region->previous;
    region->next = region->previous = nullptr;
  }

 private:
  Region* first_ = nullptr;
  Region* last_ = nullptr;
};

inline constexpr unsigned kMostAccessors = 16;  // devices that may reach one context's memory

// Fields without a comment are guarded by Space's lock.
struct Heap {
  std::atomic<CUcontext> context{nullptr};  // nullptr: the place is free
  std::atomic<bool> ready{false};           // the next four are filled in, and constant from then on
  bool movable = false;                     // its device can do what the back end needs
  CUdevice device = 0;
  std::size_t device_bytes = 0;
  std::size_t cache_limit = 0;

  CUmemAccessDesc access[kMostAccessors] = {};
  unsigned accessors = 0;
  unsigned access_version = 0;

  SlabSpace slabs;
  Slab* empty_slab = nullptr;   // one is kept, so that a program that has one small allocation at a time pays once
  RegionList regions;           // least recently allocated from first
  RegionList cached;            // freed but still mapped, oldest first
  std::size_t stuck_bytes = 0;  // of freed memory that the driver would not unmap
  std::size_t cached_bytes = 0;
  unsigned cached_count = 0;
  Block* waiting_blocks = nullptr;    // freed while a capture was in progress: given back after the next free that
  Region* waiting_regions = nullptr;  // can wait for the device

  CUstream stream = nullptr;  // of copies; only the service thread's
  CUevent event = nullptr;    // of quiescing; only the service thread's
};

}  // namespace fairlead::shim::memory
