// What a flow that has waited too long for device memory is kept: its place, until it has started (FlowQueue::claimant()).
//
// Example: A needs 12 GiB of 16. B and C, 4 GiB each, come and go, and there is never room for A. Once A claims, nobody is let in but
// beside 12 GiB on one GPU; when what runs has ended, A starts there. The start itself reserves the memory from then on.
//
// Threads: the core's.
#pragma once

#include <optional>

#include "decide/core/tables.h"
#include "decide/placement/placer.h"
#include "decide/residency/residency.h"

namespace fairlead {

class MemoryClaim {
 public:
  // Whoever claims now is kept what it needs, in the pool. To be asked for after each choice, which may have another claimant.
  void keep(CoreTables& tables, const Residency& residency, const Placer& placer) {
    const FlowId claims = tables.queue->claimant();
    if (claims || flow_) keep_for(claims, tables, residency, placer);  // mostly nobody claims, and nobody did
  }
  // The GPU goes: the place is none any more, and the next keep() finds another.
  void leave(GpuId gpu);

 private:
  void keep_for(FlowId claims, CoreTables& tables, const Residency& residency, const Placer& placer);

  FlowId flow_;  // as asked last
  std::optional<Placement> place_;
};

}  // namespace fairlead
