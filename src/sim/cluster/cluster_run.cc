#include "sim/cluster/cluster_run.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <memory>
#include <thread>
#include <utility>

#include "sim/cluster/cluster_record.h"
#include "sim/cluster/cluster_workload.h"
#include "sim/cluster/gateways.h"
#include "sim/cluster/node_run.h"
#include "sim/cluster/tenant_gaps.h"
#include "sim/preset.h"

namespace fairlead::sim {
namespace {

NodeMachine machine_of(const ClusterRunOptions& options) {
  Scenario scenario;
  apply(Preset::kNode, scenario);
  NodeMachine machine{.gpus = options.gpus,
                      .device = scenario.device,
                      .core = scenario.core,
                      .policy = scenario.policy,
                      .policy_options = scenario.policy_options};
  machine.core.instances_per_gpu = options.instances_per_gpu;
  machine.policy_options.by_tenant = !options.tenant_loads.empty();
  return machine;
}

class ClusterRun {
 public:
  explicit ClusterRun(const ClusterRunOptions& options);
  ClusterRunResult run();

 private:
  void route_window(Instant end);
  void route(Instant at, const ClusterCall& call);
  void run_nodes(Instant end);
  void take_answers();
  void gossip(Instant now);
  void exchange_tenants(Instant now);
  void strike(Instant now);
  void send_again(Instant now);
  bool has_tenants() const { return !options_.tenant_loads.empty(); }
  std::size_t tenants() const { return std::max<std::size_t>(1, options_.tenant_loads.size()); }
  ClusterRunResult result() const;

  struct Node {
    std::unique_ptr<NodeRun> run;  // null: it is lost
    std::uint64_t incarnation = 1;
    bool is_draining = false;
  };
  struct Stuck {
    ClusterCall call;
    NodeId node;
  };
  Node& at(NodeId node) { return nodes_[node.value() - 1]; }

  const ClusterRunOptions options_;
  const NodeMachine machine_;
  const Duration period_;
  const Instant measured_from_, end_;
  Gateways gateways_;
  ClusterWorkload workload_;
  std::vector<Node> nodes_;
  TenantClocks clocks_{TenantClockSettings{}};
  std::vector<Stuck> stuck_;  // on nodes that are lost
  bool were_struck_ = false, are_back_ = false;
  std::uint64_t hash_of_lost_ = 0;
  ClusterRecord record_;
  TenantGaps gaps_;
};

ClusterRun::ClusterRun(const ClusterRunOptions& options)
    : options_(options),
      machine_(machine_of(options)),
      period_(options.is_exact ? Duration(std::chrono::milliseconds(2)) : options.times.gossip_period),
      measured_from_(from_seconds(options.warm_up)),
      end_(measured_from_ + from_seconds(options.seconds)),
      gateways_(options, machine_.gpus * machine_.core.slots_per_gpu),
      workload_(options, gateways_.count(), measured_from_),
      nodes_(options.nodes),
      record_(measured_from_),
      gaps_(tenants(), measured_from_) {
  for (Node& node : nodes_) {
    node.run = std::make_unique<NodeRun>(machine_, workload_.functions(), tenants(), node.incarnation, Instant());
  }
  gossip(Instant());
}

void ClusterRun::route(Instant at_time, const ClusterCall& call) {
  const ClusterFunction& function = workload_.functions()[call.function];
  const auto choice = gateways_.send(call.gateway, function.key, function.mean_s);
  if (!choice) return record_.refused();
  record_.sent(choice->place);
  const Node& node = at(choice->node);
  node.run == nullptr ? stuck_.push_back({call, choice->node}) : node.run->send(at_time, call);
}

void ClusterRun::route_window(Instant end) {
  while (const auto call = workload_.next(end)) {
    if (call->arrived >= end_) continue;
    record_.arrived();
    route(call->arrived, *call);
  }
}

void ClusterRun::run_nodes(Instant end) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    constexpr std::size_t kAtOnce = 16;
    for (std::size_t first = next.fetch_add(kAtOnce); first < nodes_.size(); first = next.fetch_add(kAtOnce)) {
      for (std::size_t n = first; n < std::min(first + kAtOnce, nodes_.size()); ++n) {
        if (nodes_[n].run) nodes_[n].run->run_until(end);
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t t = 1; t < options_.threads; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

void ClusterRun::take_answers() {
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n].run) continue;
    for (const ClusterAnswer& answer : nodes_[n].run->take_answers()) {
      gateways_.answered(answer.call.gateway, NodeId(n + 1), workload_.functions()[answer.call.function].mean_s);
      record_.answered(answer);
    }
  }
}

void ClusterRun::gossip(Instant now) {
  double most = 0, total = 0;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];
    if (!node.run) continue;
    const Duration skew = n % 2 == 0 ? options_.skew : -options_.skew;
    LoadReport report = node.run->report(NodeId(n + 1), node.is_draining, skew);
    most = std::max(most, report.backlog_s);
    total += report.backlog_s;
    if (n < options_.liars) report.backlog_s = 0;
    if (options_.has_tenant_clocks) clocks_.report(now, report);
    gateways_.hear(now, report);
  }
  gateways_.advance(now);
  if (now >= measured_from_) record_.loads(most, total, nodes_.size());
}

void ClusterRun::exchange_tenants(Instant now) {
  if (!has_tenants()) return;
  std::vector<bool> waits(tenants());
  std::vector<double> served(tenants());
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n].run) continue;
    for (std::size_t t = 0; t < tenants(); ++t) {
      served[t] += nodes_[n].run->served_s(t);
      if (nodes_[n].run->waits(t)) waits[t] = true;
    }
  }
  gaps_.observe(now, std::move(served), waits);
  if (!options_.has_tenant_clocks) return;
  clocks_.advance(now);
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n].run) continue;
    TenantKeys waiting;
    for (std::size_t t = 0; t < tenants(); ++t) {
      if (nodes_[n].run->contends(t)) waiting.push_back(t);
    }
    const double middle = clocks_.middle_s(waiting);
    std::vector<double> factors(tenants());
    for (std::size_t t = 0; t < tenants(); ++t) factors[t] = clocks_.factor(t, middle);
    nodes_[n].run->set_tenant_factors(factors);
  }
}

void ClusterRun::strike(Instant now) {
  const double since = to_seconds(now - measured_from_);
  if (!were_struck_ && since >= 10) {
    were_struck_ = true;
    for (std::size_t n = 0; n < options_.lost_nodes; ++n) {
      for (const ClusterCall& call : nodes_[n].run->open_calls()) stuck_.push_back({call, NodeId(n + 1)});
      hash_of_lost_ ^= nodes_[n].run->hash();
      nodes_[n].run.reset();
    }
    for (std::size_t n = 0; n < options_.drained_nodes; ++n) nodes_[nodes_.size() - 1 - n].is_draining = true;
  }
  if (!are_back_ && since >= 30) {
    are_back_ = true;
    for (std::size_t n = 0; n < options_.lost_nodes; ++n) {
      Node& node = nodes_[n];
      node.run = std::make_unique<NodeRun>(machine_, workload_.functions(), tenants(), ++node.incarnation, now);
    }
  }
}

// Calls on nodes that are lost go elsewhere once their gateways suspect these.
void ClusterRun::send_again(Instant now) {
  const auto waits = [this](const Stuck& one) {
    return gateways_.takes_calls(one.call.gateway, one.node) && at(one.node).run == nullptr;
  };
  const auto again = std::stable_partition(stuck_.begin(), stuck_.end(), waits);
  const std::vector<Stuck> calls(again, stuck_.end());
  stuck_.erase(again, stuck_.end());
  for (const Stuck& one : calls) {
    record_.resent();
    route(now, one.call);
  }
}

ClusterRunResult ClusterRun::run() {
  const std::clock_t begin = std::clock();
  // To the end of arrivals, and then until the last answer, but no longer than twice as long again.
  const Instant last = end_ + 2 * (end_ - Instant());
  for (Instant now = Instant(); now < last;) {
    const Instant next = now + period_;
    route_window(next);
    run_nodes(next);
    now = next;
    take_answers();
    gossip(now);
    exchange_tenants(now);
    strike(now);
    if (!stuck_.empty()) send_again(now);
    if (now < end_) continue;
    if (has_tenants()) break;  // overloaded on purpose: what waits at the end is not of interest
    const bool are_open =
        std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.run && node.run->open() > 0; });
    if (!are_open && stuck_.empty()) break;
  }
  ClusterRunResult found = result();
  found.cpu_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return found;
}

ClusterRunResult ClusterRun::result() const {
  ClusterRunResult result = record_.result(options_.seconds);
  gaps_.add_to(result);
  result.lost = stuck_.size();
  result.state_hash = hash_of_lost_;
  for (const Node& node : nodes_) {
    if (!node.run) continue;
    result.state_hash = result.state_hash * 31 + node.run->hash();
    if (!has_tenants()) result.lost += node.run->open();
  }
  return result;
}

}  // namespace

ClusterRunResult run_cluster(const ClusterRunOptions& options) {
  return ClusterRun(options).run();
}

}  // namespace fairlead::sim
