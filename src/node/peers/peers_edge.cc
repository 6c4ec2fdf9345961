#include "node/peers/peers_edge.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <utility>

#include "edge/error_document.h"
#include "edge/json_body.h"
#include "node/peers/fields.h"

namespace fairlead {

using nlohmann::json;

namespace {

constexpr const char* kPrefix = "/fairlead/v1/peers";
constexpr std::size_t kMostFunctionsShown = 1000;

unsigned status_of(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
    case Errc::kCorrupt: return 400;
    case Errc::kUnauthenticated: return 401;
    case Errc::kNotFound: return 404;
    case Errc::kConflict: return 409;
    case Errc::kTooLarge: return 413;
    case Errc::kResourceExhausted: return 429;
    default: return 503;
  }
}

void refuse(net::HttpExchange exchange, const Error& error) {
  exchange.respond({.status = status_of(error.code), .body = write_error(error)});
}

void answer(net::HttpExchange exchange, Result<std::string> text) {
  if (!text) return refuse(std::move(exchange), text.error());
  exchange.respond({.status = 200, .body = *std::move(text)});
}

// What is sealed of a body: its head. The rest is a payload.
struct Sealed {
  std::string from;
  std::string head, payload;
};
Result<Sealed> open_request(ClusterNode& cluster, net::HttpRequest& request, std::size_t most_head) {
  const std::string_view text = request.header("X-Fairlead-Head"), body = request.body();
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || size > body.size()) {
    return fail(Errc::kUnauthenticated,
                "this path is for nodes of the cluster: X-Fairlead-Head is missing or no size of the body's head");
  }
  if (cluster.peers().sessions().peer_of(request.header(kPeerHeader)).empty()) {  // before its bytes are looked at
    return fail(Errc::kUnauthenticated, "{} is missing, or names a session that is not there", kPeerHeader);
  }
  if (size > most_head) return fail(Errc::kTooLarge, "the head has {} bytes, it may have at most {}", size, most_head);
  auto from = cluster.peers().sessions().accept(request.header(kPeerHeader), request.target(), body.substr(0, size));
  if (!from) return fail(from.error());
  Sealed sealed{.from = *std::move(from), .head = std::string(body.substr(0, size)), .payload = request.take_body()};
  sealed.payload.erase(0, size);
  return sealed;
}

void serve_hello(ClusterNode& cluster, RouteCall call) {
  answer(std::move(call.exchange), cluster.peers().hello(call.exchange.request().body()));
}

void serve_word(ClusterNode& cluster, RouteCall call) {
  const auto sealed = open_request(cluster, call.exchange.request(), kMostWordBytes);
  if (!sealed) return refuse(std::move(call.exchange), sealed.error());
  answer(std::move(call.exchange), cluster.peers().word(sealed->from, sealed->head));
}

void serve_call(ClusterNode& cluster, RouteCall call) {
  auto sealed = open_request(cluster, call.exchange.request(), kMostCallHead);
  if (!sealed) return refuse(std::move(call.exchange), sealed.error());
  cluster.serve(std::move(call.exchange), sealed->head, std::move(sealed->payload));
}

void serve_versions(ClusterNode& cluster, RouteCall call) {
  const auto sealed = open_request(cluster, call.exchange.request(), 0);
  if (!sealed) return refuse(std::move(call.exchange), sealed.error());
  call.exchange.respond({.status = 200, .body = cluster.brought().functions->versions_text()});
}

void serve_function(ClusterNode& cluster, RouteCall call) {
  const auto sealed = open_request(cluster, call.exchange.request(), kMaxFunctionNameLength);
  if (!sealed) return refuse(std::move(call.exchange), sealed.error());
  const auto exchange = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  cluster.brought().functions->pack(sealed->head, [exchange](Result<FunctionSync::Packed> packed) {
    if (!packed) return refuse(std::move(*exchange), packed.error());
    FieldWriter out;
    out.text('h', packed->head);
    if (!packed->code.empty()) out.text('z', packed->code);
    exchange->respond({.status = 200, .body = out.take()});
  });
}

void serve_changed(ClusterNode& cluster, RouteCall call) {
  const auto sealed = open_request(cluster, call.exchange.request(), 0);
  if (!sealed) return refuse(std::move(call.exchange), sealed.error());
  const auto node = cluster.peers().view().find(sealed->from);
  if (!node || cluster.peers().link(*node, PeerUse::kTalk) == nullptr) {
    return refuse(
        std::move(call.exchange),
        {Errc::kUnavailable, "this node does not know where you are: list it with --peer, or say so with --advertise"});
  }
  const auto exchange = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  cluster.brought().functions->pull(*node, [exchange] { exchange->respond({.status = 200}); });
}

void serve_object(ClusterNode& cluster, RouteCall call) {
  const auto sealed = open_request(cluster, call.exchange.request(), kMostObjectHead);
  if (!sealed) return refuse(std::move(call.exchange), sealed.error());
  PeerObjects* const objects = cluster.brought().objects.get();
  if (objects == nullptr) {
    return refuse(std::move(call.exchange), {Errc::kNotFound, "this node shows nobody its objects"});
  }
  objects->serve(std::move(call.exchange), sealed->head);
}

// ---- for people

// What this node has taken and not answered.
std::size_t calls_here(ClusterNode& cluster) {
  std::size_t count = 0;
  for (const FunctionStatus& function : cluster.status().functions)
    count += function.flow.queued + function.flow.in_flight;
  return count;
}

void drain_or_resume(ClusterNode& cluster, RouteCall call, bool resumes) {
  if (!resumes) cluster.give_way();
  if (Status resumed = resumes ? cluster.resume() : Status(); !resumed) {
    return respond_error(std::move(call.exchange), resumed.error());
  }
  respond_json(std::move(call.exchange), 200,
               {{"name", cluster.name()}, {"draining", cluster.is_draining()}, {"calls_here", calls_here(cluster)}});
}

json member_json(const PeerStatus& peer) {
  return {{"name", peer.name},
          {"address", peer.address},
          {"state", peer.state},
          {"slots", peer.word.tokens},
          {"backlog_s", peer.word.backlog_s},
          {"load_s_per_slot", peer.load_per_token},
          {"calls", peer.calls},
          {"connections", peer.connections},
          {"forwarded", peer.counters.forwarded},
          {"failed", peer.counters.failed},
          {"misdirected", peer.counters.misdirected},
          {"error", peer.last_error}};
}

json cluster_json(ClusterNode& cluster) {
  ClusterView& view = cluster.peers().view();
  json members = json::array();
  const NodeWord& own = view.last_word(view.self());
  members.push_back({{"name", cluster.name()},
                     {"address", ""},
                     {"state", cluster.is_draining() ? "draining" : "alive"},
                     {"slots", own.tokens},
                     {"backlog_s", own.backlog_s},
                     {"load_s_per_slot", view.load_per_token(view.self())}});
  for (const PeerStatus& peer : cluster.peers().status()) members.push_back(member_json(peer));
  json functions = json::array();
  const std::vector<FunctionRecord> records = cluster.list_functions();
  for (const FunctionRecord& record : records) {
    if (functions.size() == kMostFunctionsShown) break;
    const auto home = cluster.home_of(record);
    json one{{"name", record.name}, {"home", nullptr}, {"why", "no node with GPUs may live"}};
    if (home) {
      one["home"] = view.name(home->node);
      one["why"] = std::string(home_reason_name(home->reason));
      one["place"] = home->place;
    }
    functions.push_back(std::move(one));
  }
  json tenants = json::array();
  for (const auto& [name, stands] : cluster.brought().tenants->views(view)) {
    tenants.push_back({{"name", name}, {"factor", stands.factor}, {"lead_seconds", stands.lead_s}});
  }
  const ClusterNode::Counters& calls = cluster.counters();
  return {{"name", cluster.name()},
          {"epoch", view.epoch()},
          {"bound_s_per_slot", view.bound_per_token()},
          {"members", std::move(members)},
          {"tenants", std::move(tenants)},
          {"functions", std::move(functions)},
          {"functions_in_all", records.size()},
          {"calls",
           {{"local", calls.local},
            {"forwarded", calls.forwarded},
            {"received", calls.received},
            {"misdirected", calls.misdirected},
            {"retried", calls.retried},
            {"lost", calls.lost},
            {"unplaced", calls.unplaced}}},
          {"words_refused", cluster.peers().refused()}};
}

// Names of tenants are such as need no escape (model/tenant.h).
std::string tenant_metrics(ClusterNode& cluster) {
  const auto tenants = cluster.brought().tenants->views(cluster.peers().view());
  if (tenants.empty()) return "";
  std::string text =
      "# HELP fairlead_peer_tenant_factor By which this node multiplies a tenant's weight, for what other nodes serve "
      "it.\n# TYPE fairlead_peer_tenant_factor gauge\n";
  for (const auto& [name, stands] : tenants)
    text += fmt::format("fairlead_peer_tenant_factor{{tenant=\"{}\"}} {}\n", name, stands.factor);
  text +=
      "# HELP fairlead_peer_tenant_lead_seconds GPU seconds over weight that a tenant is ahead of the mean of those "
      "that wait, over all nodes.\n# TYPE fairlead_peer_tenant_lead_seconds gauge\n";
  for (const auto& [name, stands] : tenants)
    text += fmt::format("fairlead_peer_tenant_lead_seconds{{tenant=\"{}\"}} {}\n", name, stands.lead_s);
  return text;
}

}  // namespace

Edge peers_edge(ClusterNode& cluster) {
  Edge edge{.name = "peers", .prefixes = {kPrefix, "/fairlead/v1/cluster"}, .errors = document_errors()};
  const auto add = [&](const char* name, void (*handle)(ClusterNode&, RouteCall)) {
    edge.routes.add(
        "POST", std::string(kPrefix) + "/" + name,
        [&cluster, handle](RouteCall call) { handle(cluster, std::move(call)); }, Permission::kAnyone);
  };
  add("hello", serve_hello);
  add("word", serve_word);
  add("call", serve_call);
  add("versions", serve_versions);
  add("function", serve_function);
  add("changed", serve_changed);
  add("object", serve_object);
  for (const bool resumes : {false, true}) {
    edge.routes.add("POST", resumes ? "/fairlead/v1/cluster/resume" : "/fairlead/v1/cluster/drain",
                    [&cluster, resumes](RouteCall call) { drain_or_resume(cluster, std::move(call), resumes); });
  }
  edge.routes.add(
      "GET", "/fairlead/v1/cluster",
      [&cluster](RouteCall call) { respond_json(std::move(call.exchange), 200, cluster_json(cluster)); },
      Permission::kReadNode);
  return edge;
}

std::string peer_metrics(ClusterNode& cluster) {
  std::string text;
  const auto family = [&text](const char* name, const char* type, const char* help) {
    text += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  };
  const std::vector<PeerStatus> peers = cluster.peers().status();
  const auto each = [&](const char* name, const char* type, const char* help, auto value) {
    family(name, type, help);
    for (const PeerStatus& peer : peers) {
      if (!peer.name.empty()) text += fmt::format("{}{{peer=\"{}\"}} {}\n", name, peer.name, value(peer));
    }
  };
  family("fairlead_peer_state", "gauge", "1 for the state that a peer is in.");
  for (const PeerStatus& peer : peers) {
    if (!peer.name.empty())
      text += fmt::format("fairlead_peer_state{{peer=\"{}\",state=\"{}\"}} 1\n", peer.name, peer.state);
  }
  each("fairlead_peer_slots", "gauge", "Invocations that a peer may run at a time.",
       [](const PeerStatus& p) { return p.word.tokens; });
  each("fairlead_peer_backlog_seconds", "gauge", "GPU seconds that a peer has accepted and not answered.",
       [](const PeerStatus& p) { return p.word.backlog_s; });
  each("fairlead_peer_calls", "gauge", "Calls that wait for a peer's answer.",
       [](const PeerStatus& p) { return p.calls; });
  each("fairlead_peer_forwarded_total", "counter", "Calls sent to a peer.",
       [](const PeerStatus& p) { return p.counters.forwarded; });
  each("fairlead_peer_failed_total", "counter", "Calls that a peer did not answer.",
       [](const PeerStatus& p) { return p.counters.failed; });
  each("fairlead_peer_misdirected_total", "counter", "Calls that a peer sent back.",
       [](const PeerStatus& p) { return p.counters.misdirected; });
  each("fairlead_peer_words_total", "counter", "Words of a peer that were news.",
       [](const PeerStatus& p) { return p.counters.words_heard; });
  family("fairlead_peer_refused_total", "counter", "Hellos and words that were not believed.");
  text += fmt::format("fairlead_peer_refused_total {}\n", cluster.peers().refused());
  family("fairlead_peer_received_total", "counter", "Calls that other gateways sent to this node, and that it ran.");
  text += fmt::format("fairlead_peer_received_total {}\n", cluster.counters().received);
  family("fairlead_peer_functions_pulled_total", "counter", "Functions taken over from peers.");
  text += fmt::format("fairlead_peer_functions_pulled_total {}\n", cluster.brought().functions->counters().pulled);
  text += tenant_metrics(cluster);
  if (const PeerObjects* const objects = cluster.brought().objects.get()) {
    family("fairlead_peer_objects_copied_total", "counter", "Objects of peers that were copied to this node.");
    text += fmt::format("fairlead_peer_objects_copied_total {}\n", objects->counters().copies);
    family("fairlead_peer_object_bytes_total", "counter", "Bytes of peers' objects that came to this node.");
    text += fmt::format("fairlead_peer_object_bytes_total {}\n", objects->counters().bytes);
    family("fairlead_peer_objects_failed_total", "counter", "Objects that were asked for and did not come.");
    text += fmt::format("fairlead_peer_objects_failed_total {}\n", objects->counters().failed);
  }
  return text;
}

std::string peer_that_sends(ClusterNode& cluster, const net::HttpRequest& head) {
  if (!head.target().starts_with(kPrefix)) return "";
  const std::string_view peer = cluster.peers().sessions().peer_of(head.header(kPeerHeader));
  return peer.empty() ? std::string() : "peer " + std::string(peer);
}

}  // namespace fairlead
