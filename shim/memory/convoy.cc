#include "shim/memory/convoy.h"

#include "shim/driver.h"
#include "shim/node_link.h"

namespace fairlead::shim::memory {
namespace {

constexpr std::size_t kLeastGroupBytes = std::size_t{64} << 20;
constexpr unsigned kMostGroups = 48 + Space::kMostContexts;

// Regions of one context that are done when the event is.
struct Group {
  Region* first = nullptr;
  Region* last = nullptr;
  CUevent done = nullptr;
};

enum class Direction { kOut, kIn };

class Convoy {
 public:
  Convoy(Space& space, Direction direction, const Queue& queue)
      : space_(space), direction_(direction), left_(queue.bytes), group_bytes_(queue.bytes / 48) {
    if (group_bytes_ < kLeastGroupBytes) group_bytes_ = kLeastGroupBytes;
  }

  Moves run(const Queue& queue) {
    for (Region* region = queue.first; region != nullptr;) {
      Region* next = region->next_moving;
      region->next_moving = nullptr;
      start(region);
      region = next;
    }
    close_group();
    leave_context();
    for (unsigned i = 0; i < groups_count_; ++i) finish(groups_[i]);
    return moves_;
  }

 private:
  // The next action. A region that has arrived belongs to everyone again when the lock is let go of, so its staging is
  // seen to before.
  RegionAction tell(Region* region, RegionEvent event) {
    Staged unused;
    RegionAction action = RegionAction::kNone;
    {
      const Guard guard(space_.lock());
      const RegionStep next = step(region->state, event);
      region->state = next.state;
      action = next.action;
      if (action == RegionAction::kGiveStaging) {
        unused = region->staged;
        region->staged = {};
      }
    }
    space_.staging().give(unused);
    return action;
  }

  void start(Region* region) {
    const std::size_t bytes = region->bytes;
    const bool started = !moves_.stopped && enter_context(*region->heap) &&
                         (direction_ == Direction::kOut ? start_out(region) : start_in(region));
    left_ -= bytes;
    if (started) return;
    moves_.stopped = true;
    if (tell(region, RegionEvent::kFailed) == RegionAction::kDispose) space_.dispose(region);
  }

  bool start_out(Region* region) {
    const Backing& backing = *space_.backing();
    if (backing.staged) {
      region->staged = space_.staging().take(region->bytes, left_);
      if (region->staged.extent == nullptr) return false;
    }
    region->failed = backing.copy_out(*region, region->heap->stream) != CUDA_SUCCESS;
    join_group(region);
    return true;
  }

  bool start_in(Region* region) {
    if (map(*region) != CUDA_SUCCESS) return false;
    const std::size_t bytes = region->bytes;
    const RegionAction action = tell(region, RegionEvent::kMapped);
    if (action != RegionAction::kCopyIn) {
      moves_.arrived += bytes;
      if (action == RegionAction::kDispose) space_.dispose(region);
      return true;
    }
    region->failed = space_.backing()->copy_in(*region, region->heap->stream) != CUDA_SUCCESS;
    join_group(region);
    return true;
  }

  CUresult map(Region& region) {
    CUresult result = space_.map(region);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && space_.drop_cached() > 0) result = space_.map(region);
    if (result != CUDA_ERROR_OUT_OF_MEMORY || asked_for_room_) return result;
    asked_for_room_ = true;
    return ask_for_room(left_) ? space_.map(region) : result;
  }

  // Makes the heap's context current, with a stream for copies.
  bool enter_context(Heap& heap) {
    if (&heap == heap_) return true;
    close_group();
    leave_context();
    const CUcontext context = heap.context.load(std::memory_order_acquire);
    if (FAIRLEAD_REAL(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS) return false;
    heap_ = &heap;
    return heap.stream != nullptr ||
           FAIRLEAD_REAL(cuStreamCreate)(&heap.stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
  }

  void leave_context() {
    CUcontext popped = nullptr;
    if (heap_ != nullptr) FAIRLEAD_REAL(cuCtxPopCurrent_v2)(&popped);
    heap_ = nullptr;
  }

  void join_group(Region* region) {
    (open_.last != nullptr ? open_.last->next_moving : open_.first) = region;
    open_.last = region;
    open_bytes_ += region->bytes;
    if (region->failed) moves_.stopped = true;
    if (open_bytes_ >= group_bytes_) close_group();
  }

  // Without an event the group waits for its whole stream.
  void close_group() {
    if (open_.first == nullptr) return;
    if (FAIRLEAD_REAL(cuEventCreate)(&open_.done, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC) != CUDA_SUCCESS) {
      open_.done = nullptr;
    }
    if (open_.done != nullptr && FAIRLEAD_REAL(cuEventRecord)(open_.done, heap_->stream) != CUDA_SUCCESS) {
      FAIRLEAD_REAL(cuEventDestroy_v2)(open_.done);
      open_.done = nullptr;
    }
    groups_[groups_count_++] = open_;
    open_ = {};
    open_bytes_ = 0;
  }

  void finish(const Group& group) {
    const CUresult waited = group.done != nullptr ? FAIRLEAD_REAL(cuEventSynchronize)(group.done)
                                                  : FAIRLEAD_REAL(cuStreamSynchronize)(group.first->heap->stream);
    if (group.done != nullptr) FAIRLEAD_REAL(cuEventDestroy_v2)(group.done);
    // What went wrong may still be under way; nothing is given back under it.
    if (waited != CUDA_SUCCESS) FAIRLEAD_REAL(cuStreamSynchronize)(group.first->heap->stream);
    for (Region* region = group.first; region != nullptr;) {
      Region* next = region->next_moving;
      region->next_moving = nullptr;
      const bool whole = waited == CUDA_SUCCESS && !region->failed;
      region->failed = false;
      if (!whole) moves_.stopped = true;
      finish(region, whole);
      region = next;
    }
  }

  void finish(Region* region, bool whole) {
    const std::size_t bytes = region->bytes;
    RegionAction action = tell(region, whole ? RegionEvent::kCopied : RegionEvent::kFailed);
    bool arrived = whole;
    if (action == RegionAction::kUnmap) {
      const bool unmapped = space_.unmap(*region) == CUDA_SUCCESS;
      arrived = whole && unmapped;
      if (!unmapped) moves_.stopped = true;
      action = tell(region, unmapped ? RegionEvent::kUnmapped : RegionEvent::kFailed);
    }
    if (arrived) moves_.arrived += bytes;
    if (action == RegionAction::kDispose) space_.dispose(region);
  }

  Space& space_;
  const Direction direction_;
  std::size_t left_;  // bytes not yet started
  std::size_t group_bytes_;
  Moves moves_;
  bool asked_for_room_ = false;
  Heap* heap_ = nullptr;  // whose context is current
  Group open_;
  std::size_t open_bytes_ = 0;
  Group groups_[kMostGroups];
  unsigned groups_count_ = 0;
};

}  // namespace

void Queue::append(Region* region) {
  region->next_moving = nullptr;
  (last != nullptr ? last->next_moving : first) = region;
  last = region;
  bytes += region->bytes;
}

Moves move_out(Space& space, const Queue& queue) {
  return Convoy(space, Direction::kOut, queue).run(queue);
}

Moves move_in(Space& space, const Queue& queue) {
  return Convoy(space, Direction::kIn, queue).run(queue);
}

}  // namespace fairlead::shim::memory
