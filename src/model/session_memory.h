// Device memory that the calls of a kernel task's session need: what its device server has for all objects, the session's
// constants, and the rest of a call.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.h"

namespace fairlead {

struct SessionMemory {
  std::uint64_t server = 0;  // which device server; ids are never reused
  Bytes device{0};           // what that has for objects and temporaries; 0: not known, nothing is refused
  std::vector<std::pair<std::uint64_t, Bytes>> constants;  // objects of that server; sessions may share them
  Bytes call{0};                                           // inputs, outputs and temporaries
};

// What of it is on the device; changes with every load and eviction.
struct SessionResidence {
  Bytes missing{0};    // of the session's constants
  Duration reload{0};  // what bringing them takes
  Bytes resident{0};   // constants of all sessions of the server that are on the device
};

}  // namespace fairlead
