// Fair between tenants first, then by any policy between the functions of each. A tenant that floods a hundred functions
// gets what a tenant with one gets, times their weights; without this level it gets a hundred times as much.
//
// Idea. Each tenant has a policy of its own for its flows, and a virtual time: the GPU service of all its flows, divided
// by its weight. The least served tenant that has something to run is next; its policy says what. A tenant that had
// nothing to run joins at the least virtual time of those that had: neither idleness nor a start that all its flows wait
// for earns credit.
//
// Example: tenant A has 100 invocations queued in each of 100 functions when B sends one. B's virtual time is A's at that
// moment, so B is served at the second choice at the latest, not the 10,001st.
//
// Starts ahead are given in turn: to the tenant that was given one longest ago. By virtual time, a tenant whose functions
// start for long and hardly run would have all starts.
//
// Time, threads, determinism: as policy.h.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "base/id_map.h"
#include "queueing/indexed_heap.h"
#include "queueing/keyed_policy.h"
#include "queueing/policy.h"

namespace fairlead {

class TenantQueues final : public QueuePolicy {
 public:
  using MakePolicy = std::function<std::unique_ptr<QueuePolicy>()>;  // for the flows of one tenant

  explicit TenantQueues(MakePolicy make) : make_(std::move(make)), prototype_(make_()) {}

  std::string_view name() const override { return prototype_->name(); }
  bool keeps_instances() const override { return prototype_->keeps_instances(); }
  bool one_function_per_gpu() const override { return prototype_->one_function_per_gpu(); }
  void add_flow(FlowId flow, const FlowShare& share) override;
  void set_share(FlowId flow, const FlowShare& share) override;
  void set_tenant(TenantId tenant, const TenantShare& share) override;
  void set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) override;
  void set_setup(FlowId flow, Duration setup) override;
  void set_supply(FlowId flow, Supply supply) override;
  void set_setup_on(FlowId flow, GpuId gpu, std::optional<Duration> setup) override;
  void remove_flow(FlowId flow) override;
  void on_arrival(Instant now, FlowId flow, InvocationId invocation) override;
  bool cancel(Instant now, FlowId flow, InvocationId invocation) override;
  std::optional<Choice> choose(Instant now, const Placeable& placeable) override;
  std::optional<Instant> next_chance() const override { return next_chance_; }
  std::optional<FlowId> next_start(Instant now, const Placeable& startable) override;
  FlowId claimant() const override;  // of any tenant
  void on_started(FlowId flow, Duration cost) override;
  std::optional<InvocationId> fail_head(Instant now, FlowId flow, Duration took) override;
  void on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) override;
  void on_requeue(Instant now, FlowId flow, InvocationId invocation) override;
  void on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held) override;
  std::optional<Instant> next_expiry() const override;
  void expire(Instant now) override;
  std::size_t queued() const override { return queued_; }
  std::size_t queued(FlowId flow) const override;
  FlowView view(FlowId flow) const override;
  Duration global_virtual_time() const override { return global_; }
  bool contends() const override;

 private:
  using Row = IndexedHeap<int>::Row;
  struct Tenant {
    TenantId id;
    TenantShare share;
    std::unique_ptr<QueuePolicy> flows;
    Duration virtual_time{0};
    std::size_t in_flight = 0;
    Instant start_given{};  // when one of its flows was last given a start
  };
  struct ByStart {
    Instant given;
    TenantId tenant;
    auto operator<=>(const ByStart&) const = default;
  };
  struct ByVirtualTime {
    Duration virtual_time;
    TenantId tenant;
    auto operator<=>(const ByVirtualTime&) const = default;
  };

  Row row_of(TenantId tenant);  // made if it is new
  Row row_of(FlowId flow) const;
  QueuePolicy& policy_of(FlowId flow) const { return *tenants_[row_of(flow)].flows; }
  static Duration cost(const Tenant& tenant, Duration service);
  void take_back(Row row, InvocationId invocation, Duration instead);
  void settle(Row row);
  void settle_asked();

  const MakePolicy make_;
  const std::unique_ptr<QueuePolicy> prototype_;
  std::vector<Tenant> tenants_;
  std::unordered_map<TenantId, Row> rows_;  // tenant 0 too
  IdMap<FlowId, Row> tenant_of_;
  IdMap<InvocationId, Duration> charged_;    // of what is in flight
  IndexedHeap<ByVirtualTime> least_served_;  // tenants with something queued, below their limit
  IndexedHeap<ByStart> by_start_;            // the same, whoever was given a start longest ago first
  IndexedHeap<ByVirtualTime> contending_;  // of these, those whose flows do not all wait for starts: they hold global_
  Duration global_{0};
  std::optional<Instant> next_chance_;  // of the tenants that were asked last, for a choice or a start
  std::vector<Row> asked_;             // scratch of choose() and next_start()
  std::size_t queued_ = 0;
};

}  // namespace fairlead
