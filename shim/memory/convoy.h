// Regions that move in one direction: all copies are put on their streams first, then the regions are finished in that
// order while later copies still run. One pass over memory, and the link never waits for the host:
//
//   out:  staging, copy | staging, copy | ... | copy done: unmap | copy done: unmap | ...
//   in:   map, copy     | map, copy     | ... | copy done: give staging | ...
//
// What cannot move stays where its contents are whole, and so does everything behind it.
// Example: 3 GB of slabs and allocations at 12 GB/s are 48 groups of 64 MiB, each with an event; the first 64 MiB are
// unmapped 5 ms after the start, the last 250 ms after.
#pragma once

#include <cstddef>

#include "shim/memory/space.h"

namespace fairlead::shim::memory {

// Regions through next_moving, in order.
struct Queue {
  Region* first = nullptr;
  Region* last = nullptr;
  std::size_t bytes = 0;

  void append(Region* region);
};

struct Moves {
  std::size_t arrived = 0;  // bytes
  bool stopped = false;     // some did not move
};

// Regions in state leaving, whose copy is wanted. Afterwards each is away, resident again, or gone.
Moves move_out(Space& space, const Queue& queue);
// Regions in state returning, whose memory is wanted. Afterwards each is resident, away again, or gone. Asks the node for
// room once.
Moves move_in(Space& space, const Queue& queue);

}  // namespace fairlead::shim::memory
