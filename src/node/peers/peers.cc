#include "node/peers/peers.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "identity/hmac.h"
#include "node/peers/fields.h"

namespace fairlead {
namespace {

constexpr const char* kWordTarget = "/fairlead/v1/peers/word";
constexpr Duration kExchangePatience = std::chrono::seconds(1);
constexpr Duration kDeadPeriod = std::chrono::seconds(1);  // between two looks at one that is dead, or was never there
constexpr Duration kAskedLately = std::chrono::milliseconds(50);
constexpr Duration kResolvePeriod = std::chrono::seconds(5);
constexpr std::size_t kTalkConnections = 4;
constexpr std::size_t kObjectConnections = 16;
constexpr std::size_t kMostFunctionBytes = 64 << 20;  // an answer with a function's code

}  // namespace

struct Peers::Peer {
  net::Endpoint endpoint;
  bool is_listed = false;
  bool is_self = false;  // this node, in its own list
  NodeId node;           // none: it never said its name
  std::unique_ptr<PeerLink> calls, talk, objects;
  bool is_exchanging = false, is_resolving = false;
  Instant asked_at{}, heard_at{}, resolved_at{};
  bool thought_dead = false;  // its last word was one of an incarnation that is over here
  std::string last_error;
  PeerCounters counters;
};

Result<std::unique_ptr<Peers>> Peers::create(boost::asio::io_context& io, PeersOptions options, PeersPorts ports) {
  if (Status named = validate_node_name(options.name); !named) {
    return fail(Errc::kInvalidArgument, "--node-name is '{}': {}", options.name, named.error().message);
  }
  std::unique_ptr<Peers> peers(new Peers(io, std::move(options), std::move(ports)));
  if (peers->options_.trust) {
    auto trust = net::TlsTrust::load(*peers->options_.trust);
    if (!trust) return fail(trust.error());
    peers->trust_.emplace(*std::move(trust));
  }
  for (const net::Endpoint& endpoint : peers->options_.peers) {
    if (Status added = peers->add(endpoint, true); !added) return fail(added.error());
  }
  return peers;
}

Peers::Peers(boost::asio::io_context& io, PeersOptions options, PeersPorts ports)
    : io_(io),
      options_(std::move(options)),
      ports_(std::move(ports)),
      seal_(options_.key),
      sessions_(seal_),
      view_(options_.name, options_.cluster, monotonic_now()),
      incarnation_(static_cast<std::uint64_t>(std::max<std::int64_t>(1, wall_clock_ms()))),
      ticker_(io, options_.cluster.times.gossip_period, [this] { return tick(); }),
      resolver_(io) {}

Peers::~Peers() = default;

Status Peers::may_reach(const net::Endpoint& endpoint) const {
  if (endpoint.speaks_tls || endpoint.is_local() || options_.may_go_in_clear) return {};
  return fail(Errc::kInvalidArgument,
              "--peer is '{}', which is beyond loopback, and calls and code would travel in the clear: give it as "
              "https://, or add "
              "--no-tls where the network is trusted",
              endpoint.text);
}

Status Peers::add(net::Endpoint endpoint, bool is_listed) {
  if (Status may = may_reach(endpoint); !may) return may;
  if (peers_.size() >= kMostNodes) {
    return fail(Errc::kResourceExhausted, "'{}' would be peer {}, there may be {}", endpoint.text, peers_.size() + 1,
                kMostNodes);
  }
  auto peer = std::make_unique<Peer>();
  peer->endpoint = endpoint;
  peer->is_listed = is_listed;
  const auto greeted_by = [this, at = peer.get()](const PeerGreeting& greeting) { return greeted(*at, greeting); };
  PeerLinkOptions calls{.own_name = options_.name, .advertised = options_.advertised};
  PeerLinkOptions talk = calls;
  talk.most_connections = kTalkConnections;
  talk.response_bytes = kMostFunctionBytes;
  PeerLinkOptions objects = calls;
  objects.most_connections = kObjectConnections;
  const net::TlsTrust* const trust = trust_ ? &*trust_ : nullptr;
  peer->calls = std::make_unique<PeerLink>(io_, endpoint, trust, seal_, std::move(calls), greeted_by);
  peer->talk = std::make_unique<PeerLink>(io_, endpoint, trust, seal_, std::move(talk), greeted_by);
  peer->objects = std::make_unique<PeerLink>(io_, endpoint, trust, seal_, std::move(objects), greeted_by);
  peers_.push_back(std::move(peer));
  resolve(*peers_.back());
  return {};
}

// An address that is a name may be another one tomorrow.
void Peers::resolve(Peer& peer) {
  const auto use = [](Peer& of, const net::SocketAddress& address) {
    of.calls->set_address(address);
    of.talk->set_address(address);
    of.objects->set_address(address);
  };
  if (const auto literal = net::parse_socket_address(peer.endpoint.authority)) return use(peer, *literal);
  const Instant now = monotonic_now();
  if (peer.is_resolving || (peer.resolved_at != Instant{} && now - peer.resolved_at < kResolvePeriod)) return;
  peer.is_resolving = true;
  peer.resolved_at = now;
  const std::string& authority = peer.endpoint.authority;
  resolver_.ask(
      peer.endpoint.host, authority.substr(authority.rfind(':') + 1),
      [this, use, at = &peer](const Result<std::vector<net::SocketAddress>>& found) {
        at->is_resolving = false;
        if (!found) {
          return note(*at, {found.error().code, fmt::format("'{}': {}", at->endpoint.text, found.error().message)});
        }
        use(*at, found->front());
      });
}

void Peers::start() {
  tick();
  ticker_.start();
}

// ---- who is there

Peers::Peer* Peers::find(NodeId node) const {
  for (const auto& peer : peers_) {
    if (peer->node == node && !peer->is_self) return peer.get();
  }
  return nullptr;
}

// The first of two addresses under which one node answers is used.
Status Peers::greeted(Peer& peer, const PeerGreeting& greeting) {
  if (greeting.boot == boot_) {
    if (!peer.is_self) spdlog::info("peers: {} is this node itself", peer.endpoint.text);
    peer.is_self = true;
    return fail(Errc::kConflict, "{} is this node itself", peer.endpoint.text);
  }
  const auto node = view_.meet(monotonic_now(), greeting.name);
  if (!node) return fail(node.error());
  if (Peer* const other = find(*node); other != nullptr && other != &peer) {
    return fail(Errc::kConflict, "'{}' answers at {} and at {}; the first is used", greeting.name, other->endpoint.text,
                peer.endpoint.text);
  }
  if (peer.node != *node) spdlog::info("peers: {} is '{}'", peer.endpoint.text, greeting.name);
  peer.node = *node;
  return {};
}

// Who is not listed here, but lists this node.
void Peers::meet_caller(const std::string& name, std::string_view advertised) {
  const auto node = view_.find(name);
  if (!node || find(*node) != nullptr || advertised.empty()) return;
  for (const auto& peer : peers_) {
    if (peer->endpoint.text == advertised) return;  // its turn comes
  }
  auto endpoint = net::parse_endpoint(advertised);
  if (!endpoint) return;
  if (Status added = add(*std::move(endpoint), false); !added)
    spdlog::warn("peers: '{}': {}", name, added.error().message);
}

void Peers::note(Peer& peer, const Error& error) {
  if (peer.last_error == error.message) return;
  peer.last_error = error.message;
  spdlog::warn("peers: {}", error.message);
}

PeerLink* Peers::link(NodeId node, PeerUse use) {
  Peer* const peer = find(node);
  if (peer == nullptr) return nullptr;
  switch (use) {
    case PeerUse::kCalls: return peer->calls.get();
    case PeerUse::kTalk: return peer->talk.get();
    case PeerUse::kObjects: return peer->objects.get();
  }
  return nullptr;
}
PeerCounters* Peers::counters_of(NodeId node) {
  Peer* const peer = find(node);
  return peer == nullptr ? nullptr : &peer->counters;
}

std::vector<NodeId> Peers::others(PeerLife life) const {
  std::vector<NodeId> nodes;
  for (const auto& peer : peers_) {
    if (!peer->node || peer->is_self) continue;
    const MemberState state = view_.state(peer->node);
    const bool is_alive = state == MemberState::kAlive || state == MemberState::kDraining;
    if (life == PeerLife::kAlive ? is_alive : state == MemberState::kSuspect) nodes.push_back(peer->node);
  }
  return nodes;
}

void Peers::unreachable(NodeId node) {
  view_.unreachable(monotonic_now(), node);
}

// ---- gossip

PeerWord Peers::word_for(NodeId node) {
  PeerWord word{.node = {.name = options_.name,
                         .incarnation = incarnation_,
                         .number = number_,
                         .tokens = own_.tokens,
                         .backlog_s = own_.backlog_s,
                         .is_draining = own_.is_draining,
                         .warm = own_.warm,
                         .tenants = own_.tenants},
                .functions = ports_.functions()};
  if (!node) return word;
  word.known_incarnation = view_.incarnation(node);
  if (const Peer* const peer = find(node)) word.thinks_dead = peer->thought_dead;
  return word;
}

std::string Peers::own_word() {
  return write_word(word_for({}));
}

void Peers::announce() {
  tick();
}

bool Peers::tick() {
  const Instant now = monotonic_now();
  own_ = ports_.load(incarnation_);
  ++number_;
  view_.say(now, word_for({}).node);
  for (const NodeId node : view_.advance(now)) {
    const MemberState state = view_.state(node);
    spdlog::warn("peers: '{}' is {}", view_.name(node), member_state_name(state));
    Peer* const peer = find(node);
    if (state != MemberState::kDead || peer == nullptr) continue;
    peer->calls->drop({Errc::kIo, fmt::format("node '{}' is silent and counts as dead", view_.name(node))});
    peer->objects->drop({Errc::kIo, fmt::format("node \'{}\' is silent and counts as dead", view_.name(node))});
  }
  ports_.advanced();
  for (std::size_t i = 0; i < peers_.size(); ++i) {  // by index: one that answers may bring another
    if (asks(*peers_[i], now)) exchange(*peers_[i]);
  }
  return true;
}

bool Peers::asks(const Peer& peer, Instant now) const {
  if (peer.is_self || peer.is_exchanging) return false;
  const bool is_there = peer.node && view_.state(peer.node) != MemberState::kDead && peer.last_error.empty();
  if (!is_there) return now - peer.asked_at >= kDeadPeriod || peer.asked_at == Instant{} || own_.is_draining;
  return options_.name < view_.name(peer.node) || own_.is_draining ||
         now - peer.heard_at >= 2 * options_.cluster.times.gossip_period;
}

void Peers::exchange(Peer& peer) {
  peer.is_exchanging = true;
  peer.asked_at = monotonic_now();
  resolve(peer);
  ++peer.counters.words_sent;
  peer.talk->send(
      {.target = kWordTarget, .head = write_word(word_for(peer.node)), .body = {}, .patience = kExchangePatience},
      [this, at = &peer](Result<net::ClientResponse> answer) {
        at->is_exchanging = false;
        if (!answer) {
          if (at->node && answer.error().code == Errc::kUnavailable) unreachable(at->node);
          if (!at->is_self) note(*at, answer.error());
          return;
        }
        if (answer->status != 200) return note(*at, read_error(answer->body));
        if (at->node && absorb(at->node, answer->body)) at->last_error.clear();
      });
}

bool Peers::absorb(NodeId node, std::string_view text) {
  Peer* const peer = find(node);
  if (peer == nullptr) return false;
  auto word = read_word(text);
  if (word && word->node.name != view_.name(node)) {
    word = fail(Errc::kInvalidArgument, "it speaks as '{}'", word->node.name);
  }
  if (!word) {
    ++refused_;
    ++peer->counters.words_refused;
    note(*peer, {word.error().code, fmt::format("'{}' is not believed: {}", view_.name(node), word.error().message)});
    return false;
  }
  const MemberState before = view_.state(node);
  const auto heard = view_.hear(monotonic_now(), word->node);
  if (!heard) return false;
  peer->thought_dead = *heard == Heard::kThoughtDead;
  if (*heard == Heard::kNews) {
    ++peer->counters.words_heard;
    peer->heard_at = monotonic_now();
    if (const MemberState state = view_.state(node); state != before) {
      spdlog::info("peers: '{}' is {}", view_.name(node), member_state_name(state));
    }
    if (word->functions != ports_.functions()) ports_.differs(node);
  }
  // It knows a later start of this node than this one is (a clock went back), or gave this one up.
  const bool is_behind =
      word->known_incarnation > incarnation_ || (word->thinks_dead && word->known_incarnation == incarnation_);
  if (is_behind && word->known_incarnation < kMostNumber) {
    incarnation_ = word->known_incarnation + 1;
    own_ = ports_.load(incarnation_);  // what was served under the former one is said no more
  }
  return true;
}

// ---- what others ask

Result<std::string> Peers::hello(std::string_view body) {
  const auto refuse = [this](Error error) {
    ++refused_;
    return fail(std::move(error));
  };
  if (body.size() > 4096)
    return refuse({Errc::kTooLarge, fmt::format("a hello has {} bytes, it may have 4096", body.size())});
  const auto fields = Fields::parse(body);
  if (!fields) return refuse(fields.error());
  const std::string name(fields->text('n'));
  const std::string_view nonce = fields->text('o'), advertised = fields->text('u');
  if (nonce.size() < 16 || nonce.size() > 64)
    return refuse({Errc::kInvalidArgument, "a hello's nonce has 16 to 64 bytes"});
  if (!identity::are_equal(seal_.hello(name, nonce, advertised), fields->text('s'))) {
    return refuse(
        {Errc::kUnauthenticated,
         "the hello is not sealed with this cluster's key: --cluster-key must be the same file on all nodes"});
  }
  const bool is_itself = name == options_.name;  // or another of the name: the welcome says which
  if (!is_itself) {
    const auto met = view_.meet(monotonic_now(), name);
    if (!met) return refuse(met.error());
    meet_caller(name, advertised);
    // One that is listed may just have come up: what it proves here says nothing of the address where it is listed, so it is asked there.
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      Peer& peer = *peers_[i];
      const bool is_due = !peer.node || (view_.name(peer.node) == name && !peer.last_error.empty());
      if (is_due && !peer.is_self && !peer.is_exchanging && monotonic_now() - peer.asked_at > kAskedLately)
        exchange(peer);
    }
  }
  const std::string session = sessions_.open(name);
  return FieldWriter()
      .text('n', options_.name)
      .text('b', boot_)
      .text('i', session)
      .text('s', seal_.welcome({.from = options_.name, .to = name, .nonce = nonce, .session = session}))
      .take();
}

Result<std::string> Peers::word(const std::string& from, std::string_view body) {
  const auto node = view_.find(from);
  if (!node || *node == view_.self()) {
    return fail(Errc::kConflict, "a node calls itself '{}', as this one does: give each node one with --node-name",
                from);
  }
  if (find(*node) == nullptr) {
    // It lists this node and nobody told where it is itself: it may send calls here, and gets none.
    auto word = read_word(body);
    if (word && word->node.name != from)
      word = fail(Errc::kInvalidArgument, "'{}' speaks as '{}'", from, word->node.name);
    if (!word) {
      ++refused_;
      return fail(word.error());
    }
    return write_word(word_for(*node));
  }
  if (!absorb(*node, body)) return fail(Errc::kInvalidArgument, "{}", find(*node)->last_error);
  find(*node)->last_error.clear();
  return write_word(word_for(*node));
}

std::vector<PeerStatus> Peers::status() {
  std::vector<PeerStatus> all;
  for (const auto& peer : peers_) {
    if (peer->is_self) continue;
    PeerStatus one{.address = peer->endpoint.text, .state = "unknown", .last_error = peer->last_error};
    if (peer->node) {
      one.name = view_.name(peer->node);
      one.word = view_.last_word(peer->node);
      if (one.word.number > 0)
        one.state = member_state_name(view_.state(peer->node));  // else it said nothing yet but its name
      one.load_per_token = view_.load_per_token(peer->node);
    }
    one.calls = peer->calls->busy();
    one.connections = peer->calls->connections() + peer->talk->connections() + peer->objects->connections();
    one.counters = peer->counters;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace fairlead
