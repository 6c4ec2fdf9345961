// `fairlead jail`: see jail_spec.h.
#pragma once

#include <string>
#include <vector>

#include "runtime/jail/jail_spec.h"

namespace fairlead {

// Runs `program`, a path and its arguments, in the jail, with this process's environment, its descriptors 0 to 2, and 3 where
// it is open, and no others. Ends with what the program ended with: its exit status, or the same signal; 125 when the jail
// could not be made, of which stderr says why. SIGTERM kills what is inside, and waits for it.
// REQUIRES: a process of its own with one thread.
int run_jail(const JailSpec& spec, const std::vector<std::string>& program);

inline constexpr int kNoJail = 125;

}  // namespace fairlead
