// How idle instances of a core's functions are held (model/warm_hold.h): what is asked of the core about that, apart from its events.
// core/holds.cc has the idea, and what follows.
//
// Threads: the core's. Determinism: as the core.
#pragma once

#include <vector>

#include "base/result.h"
#include "decide/core/core.h"
#include "model/warm_hold.h"

namespace fairlead {

class HoldDesk {
 public:
  explicit HoldDesk(Core& core) : core_(core) {}

  // From now on, those in seats apart; it outlives updates of the function. No effect when the function is not there, under policies that
  // keep no instances, and under those that give a GPU to one function.
  void set(Instant now, FlowId flow, const WarmHold& hold, Actions& out);
  void set_bounds(const PinBounds& bounds);  // of all that is held; with the next event
  // Whether a function could be held so, beside what is asked for already. `flow`: none where it is new; `memory`: of one instance; 0: not
  // known. kInvalidArgument names the tag, its value, the bound and what to do.
  Status check(FlowId flow, TenantId tenant, const WarmHold& hold, Bytes memory) const;
  std::vector<HoldView> views() const;  // of all instances, by id

 private:
  Core& core_;
};

}  // namespace fairlead
