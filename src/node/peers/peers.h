// Who is in the cluster, kept true by gossip: each pair of nodes exchanges its words every 200 ms in one request, which the node
// whose name is first
// sends. Where that one is silent for two periods the other asks, too.
//
// A peer is known by a static list (--peer), or because it said hello under the cluster's key and told where it is (--advertise).
// Its name is what it
// proves to have, not what its address is called.
//
// Threads: the io_context's; names of hosts are resolved on a thread of their own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decide/cluster/cluster_view.h"
#include "net/host_resolver.h"
#include "net/ticker.h"
#include "node/peers/peer_link.h"
#include "node/peers/peer_messages.h"

namespace fairlead {

struct PeersOptions {
  std::string name;
  std::vector<net::Endpoint> peers;
  std::string advertised;        // "": nobody is told
  std::string key;               // the cluster's
  bool may_go_in_clear = false;  // beyond loopback
  std::optional<net::TlsTrustFiles> trust;
  ClusterSettings cluster;
};

// What the node says of itself, but for its name and numbers.
struct OwnLoad {
  double tokens = 0, backlog_s = 0;
  bool is_draining = false;
  std::shared_ptr<const WarmFunctions> warm;
  std::vector<TenantService> tenants;  // served under the incarnation that it is asked for
};

struct PeersPorts {
  std::function<OwnLoad(std::uint64_t incarnation)> load;
  std::function<std::uint64_t()> functions;  // digest of what this node knows
  // A peer knows other functions than this node. Called each time it says so.
  std::function<void(NodeId peer)> differs;
  std::function<void()> advanced;  // the view, by a gossip period
};

// Of one peer, for people.
struct PeerCounters {
  std::uint64_t words_sent = 0, words_heard = 0, words_refused = 0;
  std::uint64_t forwarded = 0, failed = 0, misdirected = 0;  // calls
};
struct PeerStatus {
  std::string name;  // "": it never answered
  std::string address;
  std::string state;  // member_state_name(), "unknown"
  std::string last_error;
  NodeWord word;
  double load_per_token = 0;
  std::size_t calls = 0, connections = 0;  // under way
  PeerCounters counters;
};

// Each has connections of its own: nobody's calls, nor the nodes' talk, wait for an object.
enum class PeerUse { kCalls, kTalk, kObjects };

// Peers that answer, also those that drain; and those that have just stopped to.
enum class PeerLife { kAlive, kSuspect };

class Peers {
 public:
  // kInvalidArgument: a peer's address, or what cannot be trusted. Starts nothing yet.
  static Result<std::unique_ptr<Peers>> create(boost::asio::io_context& io, PeersOptions options, PeersPorts ports);
  ~Peers();

  void start();
  void announce();  // now, not with the next period: this node begins to drain

  ClusterView& view() { return view_; }
  const std::string& name() const { return options_.name; }
  std::string own_word();  // for an answer of 421

  // Null: nobody of that name has an address here. Valid until the event loop turns.
  PeerLink* link(NodeId node, PeerUse use);
  PeerCounters* counters_of(NodeId node);
  std::vector<NodeId> others(PeerLife life) const;
  void unreachable(NodeId node);
  // A word that came beside an answer. False: it was refused.
  bool absorb(NodeId node, std::string_view text);

  // What others ask of this node.
  Result<std::string> hello(std::string_view body);                          // the welcome
  Result<std::string> word(const std::string& from, std::string_view body);  // the own word
  PeerSessions& sessions() { return sessions_; }                             // whose request it is

  std::vector<PeerStatus> status();
  std::uint64_t refused() const { return refused_; }  // hellos and words, in all

 private:
  struct Peer;
  Peers(boost::asio::io_context& io, PeersOptions options, PeersPorts ports);
  Status add(net::Endpoint endpoint, bool is_listed);
  Status may_reach(const net::Endpoint& endpoint) const;
  Status greeted(Peer& peer, const PeerGreeting& greeting);
  void meet_caller(const std::string& name, std::string_view advertised);
  void resolve(Peer& peer);
  bool tick();
  void exchange(Peer& peer);
  bool asks(const Peer& peer, Instant now) const;
  void note(Peer& peer, const Error& error);
  PeerWord word_for(NodeId node);
  Peer* find(NodeId node) const;

  boost::asio::io_context& io_;
  const PeersOptions options_;
  const PeersPorts ports_;
  const PeerSeal seal_;
  PeerSessions sessions_;
  std::optional<net::TlsTrust> trust_;
  const std::string boot_ = random_token();
  ClusterView view_;
  std::uint64_t incarnation_, number_ = 0;
  OwnLoad own_;
  std::uint64_t refused_ = 0;
  std::vector<std::unique_ptr<Peer>> peers_;
  net::Ticker ticker_;
  net::HostResolver resolver_;
};

}  // namespace fairlead
