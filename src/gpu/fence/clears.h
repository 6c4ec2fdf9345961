// What an entry clears before its body runs, because the entry, or a function that it may call, may read it: the block's
// shared memory, the thread's arena of local memory. Both hold what the last kernel left there.
//
// Linear in the module's length. Pure. Threads: none of its own.
#pragma once

#include <map>
#include <string_view>

#include "gpu/fence/layout.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

struct Clears {
  bool shared = false;
  bool cluster = false;  // blocks of its cluster may read each other's shared memory
  bool arena = false;
};

// The variable whose address is where dynamic shared memory begins.
constexpr std::string_view kDynamicShared = "__fence_dynamic";

// By entry; those that clear nothing are left out. Refuses what cannot be cleared.
Result<std::map<std::string_view, Clears>> plan_clears(const Module& module, const Layout& layout);

}  // namespace fairlead::fence
