// The flows of a queue in their groups: one, or with tenants one for each, and the tenants' level in front of them. Who asks
// for a flow need not know which; who asks whose turn it is need not either.
//
// Threads, determinism: as flow_queue.h, which is its only user.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/id_map.h"
#include "decide/queueing/flow_group.h"
#include "decide/queueing/tenant_level.h"

namespace fairlead {

class FlowGroups {
 public:
  using Row = FlowTable::Row;

  // `policy` outlives it.
  FlowGroups(const Policy& policy, const PolicyOptions& options);

  // Where a flow is: the row of its tenant (0 without tenants), its group, and its row in there.
  struct At {
    Row tenant;
    FlowGroup& group;
    Row row;
  };
  // REQUIRES: it was added.
  At find(FlowId flow) const;
  std::size_t queued(FlowId flow) const;  // 0 also: the flow is not there

  void add(FlowId flow, const FlowShare& share);
  void remove(FlowId flow);
  void set_tenant(TenantId tenant, const TenantShare& share);
  void set_tenant_factor(TenantId tenant, double factor);

  // To be called when something changed that the tenants' level looks at.
  void settle(Row tenant) {
    if (tenants_) tenants_->settle(tenant, groups_[tenant]->flows);
  }

  // FlowQueue's, over all groups.
  struct Choice {
    FlowId flow;
    InvocationId invocation;
    GpuId gpu = {};
  };
  std::optional<Choice> choose(Instant now, const Placeable& placeable);
  std::optional<FlowId> next_start(Instant now, const Placeable& startable);
  std::optional<Instant> next_chance() const { return tenants_ ? next_chance_ : groups_.front()->next_chance(); }
  Duration global_virtual_time() const {
    return tenants_ ? tenants_->global_virtual_time() : groups_.front()->global_virtual_time();
  }
  bool contends() const;

  TenantLevel* tenants() { return tenants_ ? &*tenants_ : nullptr; }
  const TenantLevel* tenants() const { return tenants_ ? &*tenants_ : nullptr; }
  const std::vector<std::unique_ptr<FlowGroup>>& all() const { return groups_; }

 private:
  Row row_of(TenantId tenant);  // made if it is new; 0 without tenants
  std::optional<Choice> take(FlowId flow);
  std::optional<Choice> choose_by_tenant(Instant now, const Placeable& placeable);
  void settle_asked();

  const Policy& policy_;
  const PolicyOptions options_;
  std::vector<std::unique_ptr<FlowGroup>> groups_;  // by row of their tenant
  std::optional<TenantLevel> tenants_;
  IdMap<FlowId, Row> tenant_of_;        // with tenants
  std::optional<Instant> next_chance_;  // of the tenants that were asked last, for a choice or a start
  std::vector<Row> asked_;              // scratch of choose() and next_start()
};

}  // namespace fairlead
