// What the node's own process may do once it serves: of root's capabilities those that it needs, which docs/explanation/sandbox.md
// lists with what for. The spawner keeps all, since it was forked before; so do programs that the node starts, whose root they are,
// but for those that none of them needs, which nobody below this process gets any more.
//
// no_new_privs is not set: a program started by a root without capabilities would get none, and jails are made by such programs.
//
// Threads: capabilities are a thread's, so this is called while there is one. Later ones have what that one has.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace fairlead {

// A bit for each capability. `makes_slices`: of MIG.
std::uint64_t rights_of_node(bool makes_slices);
std::uint64_t rights_of_nobody();  // that neither the node nor what it starts can get again

// No effect for who has none to give up.
Status give_up_rights(bool makes_slices);

}  // namespace fairlead
