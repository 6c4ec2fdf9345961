// What one gateway knows of its cluster: who there is, what each said of itself last, and where a call goes. Members, PeerLoads, TenantClocks
// and HomeOrders under the names that nodes have on a network, and the bounds on what may come from there.
//
//   word of B ──check──> Members (is it news? who is silent?) ──> PeerLoads ──┐      └──> TenantClocks: factors
//                                                                            ├──> choose(f): B, "home"
//   call of f ──────────────────────────────────────────────── HomeOrders ───┘
//
// Example. A, B and C; f's order is B A C. B's words stop: after 600 ms B is suspect, and f goes to A. A client's call is sent to B all the
// same in that time; B does not take the connection: unreachable(B), and choose(f) without B says A at once.
//
// A node without tokens (a pure gateway) is nobody's home.
//
// Words are refused, with the reason, where they cannot be true: names that are none or the own one, numbers beyond 2^53, loads that
// are negative, no
// number, or longer than a node can be busy. The clock of the sender is not asked: a jump of a clock changes nothing.
//
// Pure: no clock, no IO. Not thread-safe. Determinism: of the calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "decide/cluster/home_choice.h"
#include "decide/cluster/own_tenants.h"

namespace fairlead {

inline constexpr std::size_t kMostNodes = 64;  // of a cluster without a store: all gossip with all
inline constexpr std::uint64_t kMostNumber = std::uint64_t{1} << 53;    // incarnations, numbers
inline constexpr double kMostBacklogSeconds = 1e7, kMostTokens = 4096;  // of one node
inline constexpr std::size_t kMostWarmFunctions = 2048;                 // that a word lists; the rest counts as cold
inline constexpr std::size_t kMaxNodeNameLength = 64;
inline constexpr double kMostServedSeconds = 9e9;  // of one tenant on one node

// 1 to 64 letters, digits, '.', '_' or '-'. kInvalidArgument names the bound.
Status validate_node_name(std::string_view name);

// What a node says of itself.
struct NodeWord {
  std::string name;
  std::uint64_t incarnation = 0, number = 0;
  double tokens = 0;     // 0: it runs nothing
  double backlog_s = 0;  // GPU seconds accepted and not answered
  bool is_draining = false;
  std::shared_ptr<const WarmFunctions> warm;  // ascending
  std::vector<TenantService> tenants;         // by key, ascending; at most kMostTenantsSaid
};
// kInvalidArgument names the field, the value and the bound.
Status validate(const NodeWord& word);

struct ClusterSettings {
  MemberTimes times;
  BoundSettings bound{.least_bound_s = 0.5};  // a start takes seconds
  ChoiceSettings choice;
  TenantClockSettings tenants;
};

class ClusterView {
 public:
  // REQUIRES: a valid name, valid settings.
  ClusterView(std::string own_name, const ClusterSettings& settings, Instant now);

  NodeId self() const { return NodeId(1); }
  std::size_t size() const { return nodes_.size(); }
  std::optional<NodeId> find(std::string_view name) const;
  const std::string& name(NodeId node) const { return nodes_.at(node.value() - 1).word.name; }
  const NodeWord& last_word(NodeId node) const { return nodes_.at(node.value() - 1).word; }

  // Somebody of that name proved that it belongs here. kConflict: the name is our own; kResourceExhausted: kMostNodes are known.
  Result<NodeId> meet(Instant now, const std::string& name);
  // REQUIRES: its name was met. kInvalidArgument: see validate().
  Result<Heard> hear(Instant now, NodeWord word);
  void say(Instant now, NodeWord own);  // our own word. REQUIRES: valid
  void unreachable(Instant now, NodeId node) { members_.unreachable(now, node); }
  // Silence, and the bound that follows: each gossip period. Those whose state changed. Where this was not called for so long that a
  // silent node
  // would be suspect, it is this process that was stopped: nobody is silent until what waits in its sockets could be read.
  std::vector<NodeId> advance(Instant now);

  MemberState state(NodeId node) const { return members_.state(node); }
  std::uint64_t incarnation(NodeId node) const { return members_.incarnation(node); }
  std::uint64_t epoch() const { return members_.epoch(); }
  double load_per_token(NodeId node) const { return loads_.knows(node) ? loads_.load_per_token(node) : 0; }
  double bound_per_token() const { return loads_.bound_per_token(); }

  // Of all tenants that nodes speak of, as of the last advance().
  TenantClocks& tenant_clocks() { return clocks_; }

  // Who gets the call. `tried`: who cannot have it. Nothing: nobody is left who may live.
  std::optional<HomeChoice> choose(std::uint64_t function, const std::vector<NodeId>& tried = {});
  // Of calls that this gateway gives to a node, itself too: the expected GPU seconds, the same in both.
  void sent(NodeId node, double seconds) { loads_.sent(node, seconds); }
  void answered(NodeId node, double seconds) { loads_.answered(node, seconds); }

 private:
  struct Node {
    NodeWord word;
    bool is_home = false;  // in orders_
  };
  Heard take(Instant now, NodeId node, NodeWord word);

  ClusterSettings settings_;
  Members members_;
  PeerLoads loads_;
  TenantClocks clocks_;
  HomeOrders orders_;
  std::vector<Node> nodes_;  // by id
  std::map<std::string, NodeId, std::less<>> ids_;
  Instant advanced_at_, deaf_until_{};
};

}  // namespace fairlead
