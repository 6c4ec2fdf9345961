#include "node/front_door.h"

#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "base/log.h"
#include "edge/console/console_edge.h"
#include "edge/inference/batches.h"
#include "edge/inference/inference_edge.h"
#include "edge/lambda/lambda_edge.h"
#include "edge/lambda/lambda_outcome.h"
#include "edge/loop_clock.h"
#include "edge/metrics/metrics.h"
#include "edge/native/frames.h"
#include "edge/native/keys.h"
#include "edge/native/native_edge.h"
#include "edge/native/secrets.h"
#include "edge/native/usage.h"
#include "edge/native/warmth.h"
#include "edge/openfaas/openfaas_edge.h"
#include "node/audit_log.h"
#include "node/machine_name.h"
#include "node/node_places.h"
#include "node/node_tenants.h"
#include "node/node_warmth.h"
#include "node/own_address.h"
#include "node/peers/peers_edge.h"

namespace fairlead {
namespace {

void say_how_to_get_in(bool is_open, const std::string& state_dir) {
  if (is_open) return spdlog::warn("--open: whoever is on this machine may do everything, without a key");
  const std::string folder = std::filesystem::absolute(state_dir).lexically_normal();
  spdlog::info("for AWS SDKs: export AWS_ACCESS_KEY_ID=$(sed -n 1p {}/operator-key)", folder);
  spdlog::info("for AWS SDKs: export AWS_SECRET_ACCESS_KEY=$(sed -n 2p {}/operator-key)", folder);
  spdlog::info("for fairlead and its SDK: export FAIRLEAD_ENDPOINT=unix:{}/operator.sock", folder);
}

// Who holds the bodies of those who call functions without a key: together, and no tenant.
constexpr const char* kCallersWithoutKey = "(callers without a key)";
bool is_call(std::string_view target) {
  return target.starts_with("/function/") || target.starts_with("/async-function/");
}

}  // namespace

FrontDoor::~FrontDoor() = default;

Status FrontDoor::open(const ServeOptions& options) {
  if (Status known = know_callers(options); !known) return known;
  if (Status joined = join_cluster(options); !joined) return joined;
  if (Status added = add_edges(options); !added) return added;
  if (Status listening = listen(options); !listening) return listening;
  if (cluster_) cluster_->start();
  return {};
}

void FrontDoor::stop_listening() {
  http_->stop_listening();
  if (grpc_) grpc_->stop_listening();
  if (cluster_) cluster_->drain();
}

void FrontDoor::when_forwarded(std::function<void()> callback) {
  cluster_ ? cluster_->when_idle(std::move(callback)) : callback();
}

Status FrontDoor::join_cluster(const ServeOptions& options) {
  if (options.cluster_key.empty()) return {};
  auto key = read_cluster_key(options.cluster_key);
  if (!key) return fail(key.error());
  PeersOptions peers{.name = options.node_name.empty() ? machine_name() : options.node_name,
                     .peers = {},
                     .advertised = options.advertise.empty() ? own_address(options) : options.advertise,
                     .key = *std::move(key),
                     .may_go_in_clear = options.no_tls,
                     .trust = std::nullopt,
                     .cluster = {}};
  bool needs_trust = !options.peer_ca.empty() || !options.tls_certificate.empty();
  for (const std::string& url : options.peers) {
    auto endpoint = net::parse_endpoint(url);
    if (!endpoint) return fail(endpoint.error());
    needs_trust = needs_trust || endpoint->speaks_tls;
    peers.peers.push_back(*std::move(endpoint));
  }
  if (needs_trust)
    peers.trust = {.ca = options.peer_ca, .certificate = options.tls_certificate, .key = options.tls_key};
  auto cluster = ClusterNode::create(io_, node_,
                                     {.state_dir = options.state_dir,
                                      .runs_nothing = options.gpus == "0",
                                      .has_common_store = !options.store.empty(),
                                      .peers = std::move(peers),
                                      .tenants = tenant_ports(node_, !options.ignore_tenants),
                                      .objects = &node_.objects(),
                                      .tracer = watching_.traces});
  if (!cluster) return fail(cluster.error());
  cluster_ = *std::move(cluster);
  spdlog::info("node '{}' of a cluster, {} peers listed", cluster_->name(), options.peers.size());
  return {};
}

// Keys, the guard that asks for them, and the log of what was changed with them.
Status FrontDoor::know_callers(const ServeOptions& options) {
  const identity::KeyFile file(options.state_dir);
  auto keyring = file.load(common_->cluster());
  if (!keyring) return fail(keyring.error());
  if (Status made = file.ensure_operator_key(*keyring, wall_clock_ms()); !made) return made;
  auto opened = AuditLog::open(options.state_dir + "/audit.log");
  if (!opened) return fail(opened.error());
  // Shared with the requests that are written down: what waits in the event loop goes last, and is answered as it goes.
  const auto audit = std::make_shared<AuditLog>(*std::move(opened));
  keys_.emplace(file, *std::move(keyring), wall_clock_ms, common_->cluster());
  common_->follow(*keys_);
  guard_.emplace(keys_->keyring(), GuardOptions{.is_open = options.open, .operator_uid = ::geteuid()},
                 GuardPorts{.wall_clock_ms = wall_clock_ms,
                            .elsewhere =
                                [this](const std::string& tenant, Bytes bytes, NodeService::Job job) {
                                  return node_.run_elsewhere(tenant, bytes, std::move(job));
                                },
                            .audit = [audit](const AuditEntry& entry) { audit->write(entry, wall_clock_ms()); }});
  router_.set_guard(&*guard_);
  say_how_to_get_in(options.open, options.state_dir);
  return {};
}

Status FrontDoor::add_edges(const ServeOptions& options) {
  NodeService& node = service();
  batches_ = std::make_shared<inference::Batches>(node, clock_of(io_));
  const auto more_metrics = [this](bool with_exemplars) {
    const std::string of_peers = cluster_ ? peer_metrics(*cluster_) : "";
    return watching_.latencies->metrics(with_exemplars) + tracer_metrics(watching_.traces) + of_peers;
  };
  const OpenfaasOptions openfaas{
      .calls = {.is_open = options.open_functions,
                .callbacks = RegistryRules::parse(options.callbacks).value_or(RegistryRules())},
      .wall_clock_ms = wall_clock_ms,
      .elsewhere = common_->elsewhere()};
  Edge edges[] = {lambda_edge(node),
                  native_edge(io_, node, lambda_response),
                  inference_edge(node, *batches_),
                  metrics_edge(node, more_metrics),
                  usage_edge(*watching_.usage),
                  warmth_edge([this] { return NodeWarmth(node_).views(); }, monotonic_now),
                  frames_edge([this] { return NodePlaces(node_).devices(); }),
                  key_edge(*keys_, common_->elsewhere(), publish_),
                  secret_edge(common_->secrets(), common_->elsewhere(), wall_clock_ms),
                  console_edge(io_, node, {keys_->keyring(), node_.requests(), wall_clock_ms}),
                  openfaas_edge(io_, node, common_->secrets(), openfaas)};
  if (Status added = cluster_ ? router_.add(peers_edge(*cluster_)) : Status(); !added) return added;
  for (Edge& edge : edges) {
    if (Status added = router_.add(std::move(edge)); !added) return added;
  }
  return {};
}

NodeService& FrontDoor::service() {
  return cluster_ ? static_cast<NodeService&>(*cluster_) : node_;
}

net::RequestMemory FrontDoor::request_memory(const ServeOptions& options) {
  return {.bytes = options.request_memory_bytes,
          .holder = [this, is_open = options.open_functions](net::HttpRequest& head) -> Result<std::string> {
            if (is_open && is_call(head.target())) return kCallersWithoutKey;
            if (std::string peer = cluster_ ? peer_that_sends(*cluster_, head) : ""; !peer.empty()) return peer;
            return guard_->holder_of(head);
          },
          .keeps_answers_over_unix = true,
          .shared = memory_};
}

Status FrontDoor::listen(const ServeOptions& options) {
  auto handshakes = make_handshakes(options, net::TlsProtocol::kHttp1);
  if (!handshakes) return fail(handshakes.error());
  handshakes_ = *std::move(handshakes);
  http_ = std::make_unique<net::HttpServer>(
      io_, net::HttpLimits{.body_bytes = kMaxRequestBytes},
      [this](net::HttpExchange exchange) { router_.dispatch(std::move(exchange)); },
      [this](net::HttpRequest& head) { return router_.sink_for(head); }, request_memory(options));
  // Beside what was asked for, so that the operator gets in without a key. Its folder is the node's alone.
  if (const auto bound = http_->listen("unix:" + options.state_dir + "/operator.sock"); !bound) {
    spdlog::warn("there is no operator's socket: {}", bound.error().message);
  }
  for (const std::string& address : options.listen) {
    const bool is_secured = handshakes_ && !address.starts_with("unix:");
    const auto bound = is_secured ? http_->listen(address, *handshakes_) : http_->listen(address);
    if (!bound) return fail(bound.error());
    spdlog::info("listening on {}{}", *bound, is_secured ? ", with TLS" : "");
  }
  auto grpc = GrpcDoor::open(io_, {service(), *batches_}, *guard_, request_memory(options), options);
  if (!grpc) return fail(grpc.error());
  grpc_ = *std::move(grpc);
  return {};
}

}  // namespace fairlead
