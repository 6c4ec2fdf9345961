// The gateways of a simulated cluster: what each believes of the nodes, and where it sends a call.
//
// What gateways hear differs, where reports are lost. All know the same order of homes.
//
// Determinism: of the seed, and of what is asked in which order.
#pragma once

#include <optional>
#include <vector>

#include "base/rng.h"
#include "decide/cluster/home_choice.h"
#include "sim/cluster/cluster_run.h"

namespace fairlead::sim {

class Gateways {
 public:
  // `tokens`: invocations at a time of a node. All nodes are known, and alive, at time 0.
  Gateways(const ClusterRunOptions& options, std::size_t tokens);

  std::size_t count() const { return all_.size(); }
  // Where the gateway sends a call of a function with this key, which is noted as sent; `expected_s`: how long it runs. Empty: nobody takes calls.
  std::optional<HomeChoice> send(std::size_t gateway, std::uint64_t key, double expected_s);
  void answered(std::size_t gateway, NodeId node, double expected_s) { all_[gateway].loads.answered(node, expected_s); }
  bool takes_calls(std::size_t gateway, NodeId node) const { return all_[gateway].members.takes_calls(node); }

  // A node's report, which each gateway hears unless it is lost.
  void hear(Instant now, const LoadReport& report);
  // After the reports of a period: who is silent is suspected, later dead.
  void advance(Instant now);

 private:
  struct Gateway {
    explicit Gateway(const ClusterRunOptions& options) : members(options.times), loads(options.bound) {}
    Members members;
    PeerLoads loads;
    std::vector<double> at_random;  // of kChRlu: what was added since the last report, by node
  };
  std::optional<HomeChoice> choose(Gateway& gateway, std::uint64_t key);
  std::optional<HomeChoice> by_ch_rlu(Gateway& gateway, std::uint64_t key);
  std::optional<HomeChoice> better_of_two(Gateway& gateway, std::uint64_t key);

  const ClusterRunOptions options_;
  const std::size_t tokens_;
  HomeOrders orders_;
  std::vector<Gateway> all_;
  Rng dice_;
};

}  // namespace fairlead::sim
