// A warp's budget: how many instructions it may execute before it gives way.
//
// Instructions are paid for where a warp can stop: a branch back to `to` pays for what lies between, a return for the
// function. What is paid is never less than what has been executed since, so a budget bounds the time, whatever the code
// looks like. An instruction that takes as long as hundreds of others pays for them itself.
#pragma once

#include <cstddef>

#include "softgpu/ptx/warp.h"

namespace softgpu::ptx {

// True: the budget is used up.
inline bool spend(Warp& warp, std::ptrdiff_t instructions) {
  warp.budget -= static_cast<int>(instructions);
  return warp.budget < 0;
}
inline bool spend_branch(Warp& warp, const Instruction* from, const Instruction* to) {
  return spend(warp, from - to + 1);
}

}  // namespace softgpu::ptx
