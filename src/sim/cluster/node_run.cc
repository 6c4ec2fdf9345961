#include "sim/cluster/node_run.h"

#include "base/check.h"

namespace fairlead::sim {
namespace {

std::unique_ptr<Core> core_of(const NodeMachine& machine) {
  auto policy = make_policy(machine.policy, machine.policy_options);
  FL_CHECK(policy, "{}", policy.error().message);
  return std::make_unique<Core>(machine.core, *std::move(policy));
}

}  // namespace

NodeRun::NodeRun(const NodeMachine& machine, const std::vector<ClusterFunction>& functions, std::size_t tenants,
                 std::uint64_t incarnation, Instant now)
    : machine_(machine),
      functions_(functions),
      incarnation_(incarnation),
      events_(clock_, *this),
      node_(clock_, core_of(machine), *this),
      tenants_(tenants) {
  clock_.pass(now - Instant());
  for (std::size_t i = 0; i < machine.gpus; ++i) node_.add_gpu(GpuId(i + 1), machine.device);
  node_.observe([this](const Action& action) { observe(action); });
}

void NodeRun::send(Instant at, const ClusterCall& call) {
  if (pending_.begun == pending_.calls.size()) {
    pending_ = {};
  }
  events_.add(at, Kind::kArrival, pending_.calls.size());
  pending_.calls.push_back(call);
  backlog_s_ += functions_[call.function].mean_s;
}

void NodeRun::happen(const Event& event) {
  const ClusterCall call = pending_.calls[event.subject];
  ++pending_.begun;
  const FlowId flow(call.function + 1);
  const ClusterFunction& function = of(flow);
  if (known_.try_emplace(flow, true).second) {
    node_.core().add_function({.flow = flow, .timeout = std::chrono::hours(1000), .tenant = TenantId(function.tenant)});
  }
  const InvocationId id = node_.next_invocation();
  open_.try_emplace(id, {call});
  ++tenants_[function.tenant].waiting;
  if (node_.arrive(flow)) return;
  open_.erase(id);
  --tenants_[function.tenant].waiting;
  backlog_s_ -= function.mean_s;
  answers_.push_back({call, clock_.now(), false, true});
}

void NodeRun::run(FlowId, InvocationId invocation, Run& run) {
  run.after = open_.at(invocation).call.work;
}

void NodeRun::observe(const Action& action) {
  hash_ = (hash_ ^ (static_cast<std::uint64_t>(clock_.now().time_since_epoch().count()) + action.index())) *
          0x9e3779b97f4a7c15u;
  hash_ ^= hash_ >> 29;
  std::visit([this](const auto& one) { note(one); }, action);
}

void NodeRun::note(const StartInstance& action) {
  warm_.started(action.instance, of(action.flow).key);
}

void NodeRun::note(const StopInstance& action) {
  warm_.stopped(action.instance);
}

void NodeRun::note(const Deliver& action) {
  Open& open = open_.at(action.invocation);
  if (std::exchange(open.is_delivered, true)) return;
  --tenants_[functions_[open.call.function].tenant].waiting;
}

void NodeRun::note(const Complete& action) {
  const Open open = open_.at(action.invocation);
  const ClusterFunction& function = functions_[open.call.function];
  Tenant& tenant = tenants_[function.tenant];
  if (!open.is_delivered) --tenant.waiting;
  tenant.served_s += to_seconds(action.service);
  backlog_s_ -= function.mean_s;
  answers_.push_back(
      {open.call, clock_.now(), action.start == StartKind::kCold, action.outcome != OutcomeKind::kSuccess});
  open_.erase(action.invocation);
}

std::vector<ClusterCall> NodeRun::open_calls() const {
  std::vector<ClusterCall> calls;
  for (const InvocationId id : open_.ids()) calls.push_back(open_.at(id).call);
  return calls;
}

bool NodeRun::contends(std::size_t tenant) const {
  return tenant_use(node_, TenantId(tenant)).is_waiting;
}

void NodeRun::set_tenant_factors(const std::vector<double>& factors) {
  Tuning tuning;
  for (std::size_t i = 0; i < factors.size(); ++i) tuning.tenant_factors.emplace_back(TenantId(i), factors[i]);
  node_.apply([&](Actions& out) { node_.core().retune(clock_.now(), tuning, out); });
}

LoadReport NodeRun::report(NodeId node, bool is_draining, Duration skew) {
  LoadReport report{.node = node,
                    .incarnation = incarnation_,
                    .number = ++reports_,
                    .measured_at = clock_.now() + skew,
                    .tokens = static_cast<double>(machine_.gpus * machine_.core.slots_per_gpu),
                    .backlog_s = std::max(0.0, backlog_s_),
                    .is_draining = is_draining,
                    .warm = warm_.listed()};
  if (tenants_.size() > 1) {
    for (std::size_t i = 0; i < tenants_.size(); ++i) report.tenants.push_back({i, tenants_[i].served_s, contends(i)});
  }
  return report;
}

}  // namespace fairlead::sim
