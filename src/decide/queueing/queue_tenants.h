// The tenants of a queue among those of a cluster: by what their weights are multiplied, and what each was given here.
//
// Threads, determinism: as flow_queue.h.
#pragma once

#include "decide/queueing/flow_queue.h"

namespace fairlead {

struct QueueTenants {
  // The tenant's weight counts times `factor`, whatever share it has or is given. No effect without tenants. REQUIRES: above 0.
  static void set_factor(FlowQueue& queue, TenantId tenant, double factor) {
    queue.groups_.set_tenant_factor(tenant, factor);
  }
  // Without tenants, or of one that is not there: nothing.
  static TenantUse use(const FlowQueue& queue, TenantId tenant) {
    const TenantLevel* const tenants = queue.groups_.tenants();
    return tenants == nullptr ? TenantUse() : tenants->use(tenant);
  }
};

}  // namespace fairlead
