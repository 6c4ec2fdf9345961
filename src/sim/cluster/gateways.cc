#include "sim/cluster/gateways.h"

namespace fairlead::sim {
namespace {

const std::string kClass = "gpu";
constexpr std::size_t kChRluHomes = 32;  // that are asked

}  // namespace

Gateways::Gateways(const ClusterRunOptions& options, std::size_t tokens)
    : options_(options), tokens_(tokens), dice_(options.seed + 1'000'003) {
  const std::size_t gateways = options_.is_exact ? 1 : options_.gateways;
  all_.reserve(gateways);
  for (std::size_t g = 0; g < gateways; ++g) {
    all_.emplace_back(options_);
    all_.back().at_random.resize(options_.nodes);
  }
  for (std::size_t n = 0; n < options_.nodes; ++n) {
    orders_.add(NodeId(n + 1), node_key("node-" + std::to_string(n)), kClass);
    for (Gateway& gateway : all_) gateway.members.add(Instant(), NodeId(n + 1));
  }
}

std::optional<HomeChoice> Gateways::send(std::size_t gateway, std::uint64_t key, double expected_s) {
  Gateway& at = all_[gateway];
  const auto choice = choose(at, key);
  if (!choice) return std::nullopt;
  at.loads.sent(choice->node, expected_s);
  if (options_.routing == ClusterRouting::kChRlu) {
    // The call itself is counted already: what is random is the rest, up to as much again.
    at.at_random[choice->node.value() - 1] += dice_.uniform() * expected_s / static_cast<double>(tokens_);
  }
  return choice;
}

std::optional<HomeChoice> Gateways::choose(Gateway& gateway, std::uint64_t key) {
  switch (options_.routing) {
    case ClusterRouting::kChRlu: return by_ch_rlu(gateway, key);
    case ClusterRouting::kTwoChoice:
    case ClusterRouting::kLeast: return better_of_two(gateway, key);
    case ClusterRouting::kBounded: break;
  }
  return choose_home({orders_, gateway.members, gateway.loads}, key, kClass, {.warm_search = options_.warm_search});
}

std::optional<HomeChoice> Gateways::by_ch_rlu(Gateway& gateway, std::uint64_t key) {
  std::optional<HomeChoice> least;
  double least_load = 0;
  auto order = orders_.walk(key, kClass);
  for (std::size_t place = 0; place < kChRluHomes; ++place) {
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

std::optional<HomeChoice> Gateways::better_of_two(Gateway& gateway, std::uint64_t key) {
  std::optional<HomeChoice> best;
  for (std::size_t place = 0, found = 0; found < 2 && place < options_.nodes; ++place) {
    const NodeId node = options_.routing == ClusterRouting::kLeast ? NodeId(dice_.below(options_.nodes) + 1)
                                                                   : *orders_.at(key, kClass, place);
    if (!gateway.members.takes_calls(node)) continue;
    ++found;
    if (!best || gateway.loads.load_per_token(node) < gateway.loads.load_per_token(best->node)) {
      best = HomeChoice{node, HomeReason::kHome, place};
    }
  }
  return best;
}

void Gateways::hear(Instant now, const LoadReport& report) {
  for (Gateway& gateway : all_) {
    if (options_.gossip_loss > 0 && now > Instant() && dice_.uniform() < options_.gossip_loss) continue;
    const Heard heard =
        gateway.members.heard(now, report.node, {report.incarnation, report.number, report.is_draining});
    if (heard != Heard::kNews) continue;
    gateway.loads.report(report);
    gateway.at_random[report.node.value() - 1] = 0;
  }
}

void Gateways::advance(Instant now) {
  for (Gateway& gateway : all_) {
    for (const NodeId changed : gateway.members.advance(now)) {
      if (gateway.members.state(changed) == MemberState::kDead) gateway.loads.forget(changed);
    }
    gateway.loads.settle(now, [&](NodeId node) { return gateway.members.takes_calls(node); });
  }
}

}  // namespace fairlead::sim
