// Instructions that lanes of a warp execute together.
#pragma once

#include "softgpu/ptx/rows.h"
#include "softgpu/ptx/schedule.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {

// Whether all members that still live have come. The member mask lies in row d. When it is false the handler returns
// await_lanes and is executed again.
inline bool is_together(Warp& warp, const Instruction* at, std::uint32_t& members) {
  members = source<std::uint32_t>(warp, at->d)[__builtin_ctz(warp.mask)] & warp.live;
  if ((members & ~warp.mask) == 0) [[likely]]
    return true;
  if (!warp.converge_anyway) return false;
  warp.converge_anyway = false;
  members &= warp.mask;
  return true;
}

// For the .aligned instructions of a whole warp, which carry no mask.
inline bool is_warp_together(Warp& warp) {
  if (warp.mask == warp.live) [[likely]]
    return true;
  if (!warp.converge_anyway) return false;
  warp.converge_anyway = false;
  return true;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
