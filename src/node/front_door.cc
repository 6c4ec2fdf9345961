#include "node/front_door.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "edge/inference/inference_edge.h"
#include "edge/lambda/lambda_edge.h"
#include "edge/lambda/lambda_outcome.h"
#include "edge/metrics/metrics.h"
#include "edge/native/keys.h"
#include "edge/native/native_edge.h"
#include "edge/native/secrets.h"
#include "node/audit_log.h"

namespace fairlead {
namespace {

void say_how_to_get_in(bool is_open, const std::string& key) {
  if (is_open) return spdlog::warn("--open: whoever is on this machine may do everything, without a key");
  spdlog::info("for AWS SDKs: export AWS_ACCESS_KEY_ID=$(sed -n 1p {})", key);
  spdlog::info("for AWS SDKs: export AWS_SECRET_ACCESS_KEY=$(sed -n 2p {})", key);
}

}  // namespace

FrontDoor::~FrontDoor() = default;

Status FrontDoor::open(const ServeOptions& options) {
  if (Status known = know_callers(options); !known) return known;
  if (Status added = add_edges(); !added) return added;
  if (Status secured = prepare_tls(options); !secured) return secured;
  return listen(options);
}

// Keys, the guard that asks for them, and the log of what was changed with them.
Status FrontDoor::know_callers(const ServeOptions& options) {
  const identity::KeyFile file(options.state_dir);
  auto keyring = file.load();
  if (!keyring) return fail(keyring.error());
  if (Status made = file.ensure_operator_key(*keyring, wall_clock_ms()); !made) return made;
  auto opened = AuditLog::open(options.state_dir + "/audit.log");
  if (!opened) return fail(opened.error());
  // Shared with the requests that are written down: what waits in the event loop goes last, and is answered as it goes.
  const auto audit = std::make_shared<AuditLog>(*std::move(opened));
  keys_.emplace(file, *std::move(keyring), wall_clock_ms);
  guard_.emplace(keys_->keyring(), GuardOptions{.is_open = options.open, .operator_uid = ::geteuid()},
                 GuardPorts{.wall_clock_ms = wall_clock_ms,
                            .elsewhere =
                                [this](const std::string& tenant, Bytes bytes, NodeService::Job job) {
                                  return node_.run_elsewhere(tenant, bytes, std::move(job));
                                },
                            .audit = [audit](const AuditEntry& entry) { audit->write(entry, wall_clock_ms()); }});
  router_.set_guard(&*guard_);
  say_how_to_get_in(options.open, file.operator_key_path());
  return {};
}

// An edge more is a line more.
Status FrontDoor::add_edges() {
  Edge edges[] = {lambda_edge(node_),    native_edge(io_, node_, lambda_response),
                  inference_edge(node_), metrics_edge(node_),
                  key_edge(*keys_),      secret_edge(secrets_, node_, wall_clock_ms)};
  for (Edge& edge : edges) {
    if (Status added = router_.add(std::move(edge)); !added) return added;
  }
  return {};
}

Status FrontDoor::prepare_tls(const ServeOptions& options) {
  if (options.tls_certificate.empty()) return {};
  auto identity = net::TlsIdentity::load(
      {.certificate = options.tls_certificate, .key = options.tls_key, .client_ca = options.tls_client_ca});
  if (!identity) return fail(identity.error());
  handshakes_ = std::make_unique<net::TlsHandshakes>(*std::move(identity), [](const Status& renewed) {
    if (renewed) return spdlog::info("TLS: the files were written anew and are in use");
    spdlog::error("{}; new connections see the certificate that was there before", renewed.error().message);
  });
  return {};
}

Status FrontDoor::listen(const ServeOptions& options) {
  http_ = std::make_unique<net::HttpServer>(
      io_, net::HttpLimits{.body_bytes = kMaxRequestBytes},
      [this](net::HttpExchange exchange) { router_.dispatch(std::move(exchange)); },
      [this](net::HttpRequest& head) { return router_.sink_for(head); },
      net::RequestMemory{.bytes = options.request_memory_bytes,
                         .holder = [this](net::HttpRequest& head) { return guard_->holder_of(head); }});
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
  return {};
}

}  // namespace fairlead
