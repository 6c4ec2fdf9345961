#include "decide/core/memory_claim.h"

#include <algorithm>
#include <vector>

namespace fairlead {

// While an instance of it starts, the start itself has reserved what it needs.
void MemoryClaim::keep_for(FlowId claims, CoreTables& tables, const Residency& residency, const Placer& placer) {
  InstancePool& pool = tables.pool;
  const bool begins = claims != flow_;
  flow_ = claims;
  if (!claims || pool.gpus().empty()) return pool.set_claim(FlowId(), GpuId(), Bytes(0));
  const std::vector<Instance*>& instances = pool.of_flow(claims);
  const bool starts =
      std::any_of(instances.begin(), instances.end(), [](const Instance* i) { return i->starts_ahead(); });
  if (begins || !place_ || !instances.empty()) place_ = placer.place_claim(pool, claims, residency.expected(claims));
  pool.set_claim(claims, place_->gpu, starts ? Bytes(0) : place_->memory);
}

void MemoryClaim::leave(GpuId gpu) {
  if (place_ && place_->gpu == gpu) place_.reset();
}

}  // namespace fairlead
