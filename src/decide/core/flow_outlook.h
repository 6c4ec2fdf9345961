// What is expected of flows, asked by those who choose whose memory or instance goes: is the flow active, when is its next call
// expected, what would starting it again cost? And, with that, which of some idle instances is missed least.
//
// Threads: the core's.
#pragma once

#include <memory>
#include <vector>

#include "decide/core/tables.h"
#include "decide/placement/eviction.h"
#include "decide/residency/residency.h"

namespace fairlead {

class FlowOutlook final : public ResidencyContext, public RestartCosts, public FlowActivity {
 public:
  // `kind`: who goes first. The tables are looked at when something is asked, not before.
  FlowOutlook(const CoreTables& tables, EvictionKind kind);
  FlowOutlook(const FlowOutlook&) = delete;
  FlowOutlook& operator=(const FlowOutlook&) = delete;

  const EvictionPolicy& eviction() const { return *eviction_; }

  // A flow with seats claims its memory while it is throttled or inactive, too; so does one that is kept for a time (FlowSpec::hold).
  FlowDemand demand_of(FlowId flow) const override;
  InstanceId cheapest_to_stop(const std::vector<InstanceId>& idle) const override;
  bool may_stop(InstanceId instance) const override;
  bool may_move(InstanceId instance) const override;

  bool is_active(FlowId flow) const override { return fairlead::is_active(tables_, flow); }
  Duration cold_start(FlowId flow) const override;
  Duration expected_gap(FlowId flow) const override;
  std::size_t instances(FlowId flow) const override;

 private:
  const CoreTables& tables_;
  const std::unique_ptr<const EvictionPolicy> eviction_;
};

}  // namespace fairlead
