#include "sim/cluster/cluster_run.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <thread>

#include "base/rng.h"
#include "decide/cluster/home_choice.h"
#include "sim/cluster/node_run.h"
#include "sim/histogram.h"
#include "sim/preset.h"

namespace fairlead::sim {
namespace {

const std::string kClass = "gpu";

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

// A gateway's view of all nodes. What each gateway hears may differ, where reports are lost.
struct Gateway {
  explicit Gateway(const ClusterRunOptions& options) : members(options.times), loads(options.bound) {}
  Members members;
  PeerLoads loads;
  std::vector<double> at_random;  // of kChRlu: what was added since the last report, by node
};

class ClusterRun {
 public:
  explicit ClusterRun(const ClusterRunOptions& options);
  ClusterRunResult run();

 private:
  void make_functions();
  std::size_t function_at(double part) const;
  void route_window(Instant end);
  void route(Instant at, const ClusterCall& call);
  std::optional<HomeChoice> choose(Gateway& gateway, std::size_t function);
  std::optional<HomeChoice> by_ch_rlu(Gateway& gateway, std::uint64_t key);
  void run_nodes(Instant end);
  void take_answers();
  void note(const ClusterAnswer& answer);
  void gossip(Instant now);
  void exchange_tenants(Instant now);
  void strike(Instant now);
  void send_again(Instant now);
  void measure_tenants(Instant now);
  double per_second(Instant now) const { return rate_ * (is_hot(now) ? 1 + hot_extra_ : 1); }
  bool is_hot(Instant now) const {
    const double since = to_seconds(now - measured_from_);
    return options_.hot_factor > 1 && since >= 10 && since < 20;
  }
  bool is_down(std::size_t node) const { return nodes_[node] == nullptr; }
  NodeId id(std::size_t node) const { return NodeId(node + 1); }
  ClusterRunResult result();

  const ClusterRunOptions options_;
  const NodeMachine machine_;
  const Duration period_;
  const Instant measured_from_, end_;
  std::vector<ClusterFunction> functions_;
  std::vector<double> cumulative_;
  double rate_ = 0, hot_extra_ = 0;
  std::size_t hot_function_ = 0;
  std::vector<std::unique_ptr<NodeRun>> nodes_;
  std::vector<std::uint64_t> incarnation_;
  std::vector<bool> is_draining_;
  HomeOrders orders_;
  std::vector<Gateway> gateways_;
  TenantClocks clocks_{TenantClockSettings{}};
  Rng rng_, dice_;  // of the workload, which is alike for all contestants; of what they do
  Instant now_, next_arrival_;
  struct Stuck {
    ClusterCall call;
    std::size_t node;
  };
  std::vector<Stuck> stuck_;  // on nodes that are lost
  bool were_struck_ = false, are_back_ = false;

  ClusterRunResult counted_;
  Histogram latency_;
  std::vector<Histogram> by_second_;
  double cold_ = 0, places_ = 0, routed_ = 0, worst_sum_ = 0, ticks_ = 0;
  std::uint64_t hash_of_lost_ = 0;
  std::vector<double> served_s_, served_before_s_;  // by tenant
  std::vector<bool> waited_all_;
  double gap_sum_ = 0, gaps_ = 0;
  Instant window_end_;
};

ClusterRun::ClusterRun(const ClusterRunOptions& options)
    : options_(options),
      machine_(machine_of(options)),
      period_(options.is_exact ? Duration(std::chrono::milliseconds(2)) : options.times.gossip_period),
      measured_from_(from_seconds(options.warm_up)),
      end_(measured_from_ + from_seconds(options.seconds)),
      incarnation_(options.nodes, 1),
      is_draining_(options.nodes),
      rng_(options.seed),
      dice_(options.seed + 1'000'003),
      window_end_(measured_from_ + std::chrono::seconds(30)) {
  make_functions();
  const std::size_t tenants = std::max<std::size_t>(1, options_.tenant_loads.size());
  served_s_.resize(tenants);
  served_before_s_.resize(tenants);
  waited_all_.resize(tenants, true);
  gateways_.reserve(options_.gateways);
  for (std::size_t g = 0; g < (options_.is_exact ? 1 : options_.gateways); ++g) {
    gateways_.emplace_back(options_);
    gateways_.back().at_random.resize(options_.nodes);
  }
  for (std::size_t n = 0; n < options_.nodes; ++n) {
    nodes_.push_back(std::make_unique<NodeRun>(machine_, functions_, tenants, 1, Instant()));
    orders_.add(id(n), node_key("node-" + std::to_string(n)), kClass);
    for (Gateway& gateway : gateways_) gateway.members.add(Instant(), id(n));
  }
  gossip(Instant());
  next_arrival_ = Instant(from_seconds(rng_.exponential(1 / rate_)));
}

// Run times are spread by a factor of about 3 either way; the busiest functions are not the longest.
void ClusterRun::make_functions() {
  const bool has_tenants = !options_.tenant_loads.empty();
  const std::size_t tenants = has_tenants ? options_.tenant_loads.size() : 1;
  const auto devices = static_cast<double>(options_.nodes * options_.gpus);
  Rng rng(options_.seed * 77 + 1);
  for (std::size_t t = 0; t < tenants; ++t) {
    const double per_node =
        has_tenants ? options_.tenant_functions[t] : static_cast<double>(options_.functions_per_node);
    const auto count =
        std::max<std::size_t>(1, static_cast<std::size_t>(per_node * static_cast<double>(options_.nodes)));
    const double load = has_tenants ? options_.tenant_loads[t] : options_.load;
    const std::size_t first = functions_.size();
    double work = 0;
    for (std::size_t i = 0; i < count; ++i) {
      ClusterFunction function{.key = function_key(std::to_string(t), std::to_string(i)), .tenant = t};
      function.mean_s = std::exp2(3.2 * rng.uniform() - 1.6) * 0.5;
      function.share = std::pow(static_cast<double>(i + 1), -options_.exponent);
      work += function.mean_s * function.share;
      functions_.push_back(function);
    }
    for (std::size_t i = first; i < functions_.size(); ++i)
      functions_[i].share *= load * devices / work;  // calls per second
  }
  double sum = 0;
  for (const ClusterFunction& function : functions_) cumulative_.push_back(sum += function.share);
  rate_ = sum;
  hot_function_ = functions_.size() / 10;
  hot_extra_ = functions_[hot_function_].share * (options_.hot_factor - 1) / rate_;
}

std::size_t ClusterRun::function_at(double part) const {
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), part * rate_);
  return std::min(functions_.size() - 1, static_cast<std::size_t>(found - cumulative_.begin()));
}

std::optional<HomeChoice> ClusterRun::by_ch_rlu(Gateway& gateway, std::uint64_t key) {
  std::optional<HomeChoice> least;
  double least_load = 0;
  auto order = orders_.walk(key, kClass);
  for (std::size_t place = 0; place < 32; ++place) {
    const auto node = order->at(place);
    if (!node) break;
    if (!gateway.members.takes_calls(*node)) continue;
    const double load = gateway.loads.load_per_token(*node) + gateway.at_random[node->value() - 1];
    if (load < options_.own_capacity) return HomeChoice{*node, HomeReason::kOverflow, place};
    if (!least || load < least_load) {
      least = HomeChoice{*node, HomeReason::kLeastLoaded, place};
      least_load = load;
    }
  }
  return least;
}

std::optional<HomeChoice> ClusterRun::choose(Gateway& gateway, std::size_t function) {
  const std::uint64_t key = functions_[function].key;
  const HomeView view{orders_, gateway.members, gateway.loads};
  if (options_.routing == ClusterRouting::kChRlu) return by_ch_rlu(gateway, key);
  if (options_.routing == ClusterRouting::kTwoChoice || options_.routing == ClusterRouting::kLeast) {
    std::optional<HomeChoice> best;
    for (std::size_t place = 0, found = 0; found < 2 && place < options_.nodes; ++place) {
      const NodeId node = options_.routing == ClusterRouting::kLeast ? id(dice_.below(options_.nodes))
                                                                     : *orders_.at(key, kClass, place);
      if (!gateway.members.takes_calls(node)) continue;
      ++found;
      if (!best || gateway.loads.load_per_token(node) < gateway.loads.load_per_token(best->node))
        best = HomeChoice{node, HomeReason::kHome, place};
    }
    return best;
  }
  return choose_home(view, key, kClass, {.warm_search = options_.warm_search});
}

void ClusterRun::route(Instant at, const ClusterCall& call) {
  Gateway& gateway = gateways_[call.gateway];
  const auto choice = choose(gateway, call.function);
  if (!choice) {
    ++counted_.refused;
    return;
  }
  const std::size_t node = choice->node.value() - 1;
  const double expected = functions_[call.function].mean_s;
  gateway.loads.sent(choice->node, expected);
  if (options_.routing == ClusterRouting::kChRlu) {
    // The call itself is counted already: what is random is the rest, up to as much again.
    gateway.at_random[node] +=
        dice_.uniform() * expected / static_cast<double>(machine_.gpus * machine_.core.slots_per_gpu);
  }
  places_ += static_cast<double>(choice->place);
  ++routed_;
  is_down(node) ? stuck_.push_back({call, node}) : nodes_[node]->send(at, call);
}

void ClusterRun::route_window(Instant end) {
  while (next_arrival_ < end) {
    const double part = rng_.uniform() * (is_hot(next_arrival_) ? 1 + hot_extra_ : 1);
    const std::size_t function = part >= 1 ? hot_function_ : function_at(part);
    const double work = functions_[function].mean_s * (0.7 + 0.6 * rng_.uniform());
    if (next_arrival_ < end_)
      route(next_arrival_, {function, rng_.below(gateways_.size()), next_arrival_, from_seconds(work)});
    ++counted_.all_calls;
    next_arrival_ += from_seconds(rng_.exponential(1 / per_second(next_arrival_)));
  }
}

void ClusterRun::run_nodes(Instant end) {
  if (options_.threads <= 1) {
    for (auto& node : nodes_) {
      if (node) node->run_until(end);
    }
    return;
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    constexpr std::size_t kAtOnce = 16;
    for (std::size_t first = next.fetch_add(kAtOnce); first < nodes_.size(); first = next.fetch_add(kAtOnce)) {
      for (std::size_t n = first; n < std::min(first + kAtOnce, nodes_.size()); ++n) {
        if (nodes_[n]) nodes_[n]->run_until(end);
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t t = 1; t < options_.threads; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

void ClusterRun::note(const ClusterAnswer& answer) {
  if (answer.call.arrived < measured_from_) return;
  if (answer.is_refused) {
    ++counted_.refused;
    return;
  }
  ++counted_.calls;
  cold_ += answer.is_cold ? 1 : 0;
  const Duration latency = answer.at - answer.call.arrived;
  latency_.add(latency);
  const auto second = static_cast<std::size_t>(to_seconds(answer.at - measured_from_));
  if (by_second_.size() <= second) by_second_.resize(second + 1);
  by_second_[second].add(latency);
}

void ClusterRun::take_answers() {
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n]) continue;
    for (const ClusterAnswer& answer : nodes_[n]->take_answers()) {
      gateways_[answer.call.gateway].loads.answered(id(n), functions_[answer.call.function].mean_s);
      note(answer);
    }
  }
}

void ClusterRun::gossip(Instant now) {
  double most = 0, total = 0;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n]) continue;
    const Duration skew = n % 2 == 0 ? options_.skew : -options_.skew;
    LoadReport report = nodes_[n]->report(id(n), is_draining_[n], skew);
    most = std::max(most, report.backlog_s);
    total += report.backlog_s;
    if (n < options_.liars) report.backlog_s = 0;
    if (options_.has_tenant_clocks) clocks_.report(now, report);
    for (Gateway& gateway : gateways_) {
      if (options_.gossip_loss > 0 && now > Instant() && dice_.uniform() < options_.gossip_loss) continue;
      if (gateway.members.heard(now, id(n), {report.incarnation, report.number, report.is_draining}) != Heard::kNews)
        continue;
      gateway.loads.report(report);
      gateway.at_random[n] = 0;
    }
  }
  for (Gateway& gateway : gateways_) {
    for (const NodeId changed : gateway.members.advance(now)) {
      if (gateway.members.state(changed) == MemberState::kDead) gateway.loads.forget(changed);
    }
    gateway.loads.settle(now, [&](NodeId node) { return gateway.members.takes_calls(node); });
  }
  if (now >= measured_from_ && total > 0) {
    worst_sum_ += most * static_cast<double>(nodes_.size()) / total;
    ++ticks_;
  }
}

void ClusterRun::exchange_tenants(Instant now) {
  if (options_.tenant_loads.empty()) return;
  const std::size_t tenants = options_.tenant_loads.size();
  std::vector<bool> waits(tenants);
  std::vector<double> served(tenants);
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n]) continue;
    for (const TenantService& said : nodes_[n]->report(id(n), false, Duration(0)).tenants) {
      served[said.tenant] += said.seconds;
      if (said.is_waiting) waits[said.tenant] = true;
    }
  }
  for (std::size_t t = 0; t < tenants; ++t) waited_all_[t] = waited_all_[t] && waits[t];
  served_s_ = served;
  measure_tenants(now);
  if (!options_.has_tenant_clocks) return;
  clocks_.advance();
  std::vector<double> weights(tenants);
  for (std::size_t t = 0; t < tenants; ++t) weights[t] = clocks_.factor(t);
  for (auto& node : nodes_) {
    if (node) node->set_tenant_weights(weights);
  }
}

void ClusterRun::measure_tenants(Instant now) {
  if (now < measured_from_ + std::chrono::seconds(30)) {  // the first half minute fills the queues
    if (now <= measured_from_) served_before_s_ = served_s_;
  }
  if (now < window_end_) return;
  double most = 0, least = 1e300, sum = 0, compared = 0;
  for (std::size_t t = 0; t < served_s_.size(); ++t) {
    if (!waited_all_[t]) continue;
    const double got = served_s_[t] - served_before_s_[t];
    most = std::max(most, got);
    least = std::min(least, got);
    sum += got;
    ++compared;
  }
  if (compared >= 2) {
    counted_.worst_gap_s = std::max(counted_.worst_gap_s, most - least);
    counted_.worst_gap_part = std::max(counted_.worst_gap_part, (most - least) * compared / sum);
    gap_sum_ += most - least;
    ++gaps_;
  }
  served_before_s_ = served_s_;
  waited_all_.assign(served_s_.size(), true);
  window_end_ += std::chrono::seconds(30);
}

void ClusterRun::strike(Instant now) {
  const double since = to_seconds(now - measured_from_);
  if (!were_struck_ && since >= 10) {
    were_struck_ = true;
    for (std::size_t n = 0; n < options_.lost_nodes; ++n) {
      for (const ClusterCall& call : nodes_[n]->open_calls()) stuck_.push_back({call, n});
      hash_of_lost_ ^= nodes_[n]->hash();
      nodes_[n].reset();
    }
    for (std::size_t n = 0; n < options_.drained_nodes; ++n) is_draining_[nodes_.size() - 1 - n] = true;
  }
  if (!are_back_ && since >= 30) {
    are_back_ = true;
    for (std::size_t n = 0; n < options_.lost_nodes; ++n) {
      nodes_[n] = std::make_unique<NodeRun>(machine_, functions_, served_s_.size(), ++incarnation_[n], now);
    }
  }
}

void ClusterRun::send_again(Instant now) {
  std::vector<Stuck> still;
  std::vector<ClusterCall> again;
  for (const Stuck& one : stuck_) {
    if (gateways_[one.call.gateway].members.takes_calls(id(one.node)) && is_down(one.node)) {
      still.push_back(one);
    } else {
      again.push_back(one.call);
    }
  }
  stuck_ = std::move(still);
  for (const ClusterCall& call : again) {
    ++counted_.resent;
    route(now, call);
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
    if (!options_.tenant_loads.empty()) break;  // overloaded on purpose: what waits at the end is not of interest
    const bool are_open =
        std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node && node->open() > 0; });
    if (!are_open && stuck_.empty()) break;
  }
  counted_.cpu_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return result();
}

ClusterRunResult ClusterRun::result() {
  ClusterRunResult result = counted_;
  result.mean_s = latency_.mean_seconds();
  result.p50_s = to_seconds(latency_.percentile(0.5));
  result.p99_s = to_seconds(latency_.percentile(0.99));
  result.cold_percent = 100 * cold_ / std::max(1.0, static_cast<double>(result.calls));
  result.homes_away = places_ / std::max(1.0, routed_);
  result.worst_load = worst_sum_ / std::max(1.0, ticks_);
  result.mean_gap_s = gap_sum_ / std::max(1.0, gaps_);
  result.lost = stuck_.size();
  result.state_hash = hash_of_lost_;
  for (const auto& node : nodes_) {
    if (!node) continue;
    result.state_hash = result.state_hash * 31 + node->hash();
    if (options_.tenant_loads.empty()) result.lost += node->open();
  }
  if (by_second_.size() > 11) {
    double before = 0;
    for (std::size_t s = 5; s < 10; ++s) before += to_seconds(by_second_[s].percentile(0.99)) / 5;
    const auto until = static_cast<std::size_t>(options_.seconds);
    for (std::size_t s = 10; s < std::min(until, by_second_.size()); ++s) {
      if (to_seconds(by_second_[s].percentile(0.99)) > 1.5 * before) result.back_s = static_cast<double>(s + 1 - 10);
    }
  }
  return result;
}

}  // namespace

ClusterRunResult run_cluster(const ClusterRunOptions& options) {
  return ClusterRun(options).run();
}

}  // namespace fairlead::sim
