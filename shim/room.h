// An allocation on a full device asks the node for room and is tried again: more than once, because what was freed may have
// been less than it needs, or have gone to what no report shows. The node refuses when nothing more can leave.
#pragma once

#include "shim/driver.h"
#include "shim/node_link.h"

namespace fairlead::shim {

// `attempt` allocates about `bytes`, as the driver answers; it has failed without effect where it is called again.
template <typename Attempt>
CUresult making_room(std::uint64_t bytes, Attempt attempt) {
  constexpr int kMostRequests = 8;
  CUresult result = attempt();
  for (int i = 0; result == CUDA_ERROR_OUT_OF_MEMORY && i < kMostRequests && ask_for_room(bytes); ++i)
    result = attempt();
  return result;
}

}  // namespace fairlead::shim
