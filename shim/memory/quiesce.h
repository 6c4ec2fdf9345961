// Waiting for the work of all contexts to end, without ever waiting for good: a kernel may wait for the host for ever.
#pragma once

#include <cstdint>

#include "shim/memory/space.h"

namespace fairlead::shim::memory {

// True: all work submitted before the call is done. False: not by `until_ns` (now_ns), a stream is under capture, a
// context has failed, or the driver (older than 12.5) cannot tell. REQUIRES: the gate is closed; the service thread.
bool quiesce(Space& space, std::uint64_t until_ns);

}  // namespace fairlead::shim::memory
