// One node of a simulated cluster: a VirtualNode on a clock of its own, which stands wherever all others stand between gossip periods.
//
// It knows a function from its first call on. It counts what a node reports: backlog, functions with an instance, service of tenants.
//
// Threads: one at a time; different nodes share nothing that changes. Determinism: of the calls.
#pragma once

#include <memory>
#include <vector>

#include "base/id_map.h"
#include "decide/cluster/load_report.h"
#include "sim/cluster/warm_instances.h"
#include "sim/scenario.h"
#include "sim/virtual_node.h"

namespace fairlead::sim {

struct ClusterFunction {
  std::uint64_t key = 0;
  std::size_t tenant = 0;
  double mean_s = 0;  // of a run, alone on a device
  double share = 0;   // of all calls
};

struct ClusterCall {
  std::size_t function = 0;
  std::size_t gateway = 0;
  Instant arrived;  // at its gateway, the first time
  Duration work{0};
};

struct ClusterAnswer {
  ClusterCall call;
  Instant at;
  bool is_cold = false, is_refused = false;
};

struct NodeMachine {
  std::size_t gpus = 8;
  DeviceModel device;
  CoreOptions core;
  std::string policy;
  PolicyOptions policy_options;
  Duration cold_start = std::chrono::milliseconds(2500);
};

class NodeRun final : private ClockParty, private InstanceModel {
 public:
  // All must outlive this. `tenants`: how many.
  NodeRun(const NodeMachine& machine, const std::vector<ClusterFunction>& functions, std::size_t tenants,
          std::uint64_t incarnation, Instant now);

  void send(Instant at, const ClusterCall& call);  // REQUIRES: at >= where the clock stands
  void run_until(Instant end) { clock_.run_until(end); }
  void set_tenant_factors(const std::vector<double>& factors);
  double served_s(std::size_t tenant) const { return tenants_[tenant].served_s; }
  bool waits(std::size_t tenant) const { return tenants_[tenant].waiting > 0; }  // a call of it, for whatever
  bool contends(std::size_t tenant) const;                                       // TenantUse::is_waiting

  // Since they were taken last, in the order in which they came.
  std::vector<ClusterAnswer> take_answers() { return std::exchange(answers_, {}); }
  // What it has not answered: the node is lost.
  std::vector<ClusterCall> open_calls() const;
  std::size_t open() const { return open_.size() + (pending_.calls.size() - pending_.begun); }
  // `number` counts up; `skew`: of its clock.
  LoadReport report(NodeId node, bool is_draining, Duration skew);
  std::uint64_t hash() const { return hash_; }

 private:
  enum class Kind : std::uint8_t { kArrival };
  struct Open {
    ClusterCall call;
    bool is_delivered = false;
  };
  struct Tenant {
    double served_s = 0;
    std::size_t waiting = 0;
  };

  void happen(const Event& event) override;
  Start start(const StartInstance&) override { return {.after = machine_.cold_start, .allocations = 0}; }
  void run(FlowId flow, InvocationId invocation, Run& run) override;
  bool returns_at_once() override { return true; }

  void observe(const Action& action);
  void note(const StartInstance& action);
  void note(const StopInstance& action);
  void note(const Deliver& action);
  void note(const Complete& action);
  template <typename Other>
  void note(const Other&) {}
  const ClusterFunction& of(FlowId flow) const { return functions_[flow.value() - 1]; }

  const NodeMachine& machine_;
  const std::vector<ClusterFunction>& functions_;
  const std::uint64_t incarnation_;
  VirtualClock clock_;
  EventsOf<Kind> events_;
  VirtualNode node_;
  struct {
    std::vector<ClusterCall> calls;  // sent, and not there yet, after the first `begun`
    std::size_t begun = 0;
  } pending_;
  IdMap<InvocationId, Open> open_;
  IdMap<FlowId, bool> known_;
  WarmInstances warm_;
  std::vector<Tenant> tenants_;
  std::vector<ClusterAnswer> answers_;
  double backlog_s_ = 0;
  std::uint64_t reports_ = 0, hash_ = 0;
};

}  // namespace fairlead::sim
