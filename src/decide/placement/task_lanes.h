// Whether one more call of a kernel task may begin on a GPU. A lane is the right to compute there. A call that first brings
// constants to the device computes nothing meanwhile, so it does that in a lane of its own, and takes one to compute when its
// data is there: then one call more may compute than there are lanes, and no other begins until one has ended.
//
// Example: two lanes, constants of 2 GB that load for 167 ms, calls of 39 ms. Held through the load, a lane serves four calls
// less each time, and a GPU that loads six times a second has half of its lanes left. Here it has both.
//
// One load at a time: two would share the link, and both be late.
#pragma once

#include <cstddef>

namespace fairlead {

struct TaskLanes {
  std::size_t lanes = 1;
  std::size_t loads_at_once = 0;  // 0: who loads holds a lane
  std::size_t running = 0;        // of any kind, those that load among them
  std::size_t loading = 0;

  bool takes(bool loads_first) const {
    const std::size_t computing = running - loading;
    if (!loads_first || loads_at_once == 0) return computing < lanes;
    return loading < loads_at_once && computing <= lanes;
  }
  bool takes_any() const { return takes(false) || takes(true); }
};

}  // namespace fairlead
