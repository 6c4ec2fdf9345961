// Where contents are while they are away: parts of the arena that the node shares, or, without one, pinned memory of the
// process. A copy goes straight to its final place; there is no bounce buffer.
//
// Parts are cut from extents, so that the node is not asked for every slab: 64 slabs of 2 MiB that leave together are one
// request of 128 MiB.
// An extent goes back to the node when its last part is given back. The arena is registered with the driver in chunks of
// 32 MiB when they are first used, and stays so: pinning costs several times what the copy costs, once.
//
// A node that comes back has a new arena. The old one, which lives as long as anyone maps it, keeps what is in it until
// that has returned.
//
// Example: 3 slabs and an allocation of 1.5 GB leave. The slabs are granules 0 to 2 of a shared extent, the allocation
// has an extent of its own; two requests in all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shim/memory/os.h"
#include "shim/node_link.h"

namespace fairlead::shim::memory {

struct Extent;

// A part that contents may be kept in; nothing: extent == nullptr.
struct Staged {
  char* host = nullptr;
  std::size_t bytes = 0;
  Extent* extent = nullptr;
};

// Memory that a node shares.
struct Arena {
  static constexpr std::size_t kChunk = std::size_t{32} << 20;

  char* base = nullptr;
  std::size_t bytes = 0;
  unsigned char* registered = nullptr;  // by chunk: the driver was asked already
  unsigned extents = 0;                 // that are not given back

  bool map(int descriptor, std::size_t size);
  // Memory that cannot be pinned is copied to all the same, more slowly. REQUIRES: a current context.
  void register_chunks(const char* host, std::size_t size);
  void unmap();
};

class Staging {
 public:
  constexpr Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // The arena of the node that is there now; -1: there is none, and memory of the process is used from here on. The
  // descriptor is closed.
  void use_arena(int descriptor, std::size_t bytes);

  // `soon`: how much the same move will take, this part included. REQUIRES: multiples of kGranule; a current context.
  // Waits for the node's answer.
  Staged take(std::size_t bytes, std::size_t soon);
  void give(const Staged& part);

  // How far a copy at `at` may go in one call: the driver takes no range that two registrations share.
  static std::size_t stretch(const Staged& part, std::size_t at);

 private:
  static constexpr std::size_t kSharedGranules = 64;
  static constexpr unsigned kMostArenas = 4;
  Staged cut(std::size_t granules) FL_REQUIRES(lock_);
  Extent* obtain(std::size_t bytes);
  static bool obtain_from_node(Extent* extent, std::size_t bytes);
  static bool obtain_from_process(Extent* extent, std::size_t bytes);
  void keep(Extent* extent);
  void drop_idle();
  void drop_old_arenas();

  Lock lock_;
  Arena arenas_[kMostArenas] FL_GUARDED_BY(lock_);  // unmapped ones are free places
  Arena* arena_ FL_GUARDED_BY(lock_) = nullptr;     // the node's that is there now
  Extent* extents_ FL_GUARDED_BY(lock_) = nullptr;
  Pool<Extent> pool_ FL_GUARDED_BY(lock_);
};

}  // namespace fairlead::shim::memory
