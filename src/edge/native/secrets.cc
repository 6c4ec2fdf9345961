#include "edge/native/secrets.h"

#include <iterator>
#include <memory>
#include <utility>

#include "edge/error_document.h"
#include "edge/json_body.h"
#include "edge/native/tenant_header.h"

namespace fairlead {

using nlohmann::json;

namespace {

using Change = std::function<Status(const std::string& tenant, const std::string& name, const std::string& value)>;

void change_elsewhere(const RunElsewhere& elsewhere, RouteCall call, Change change) {
  const std::string tenant = tenant_named_by(call), name = call.parameter("name");
  const auto value = std::make_shared<std::string>(call.exchange.request().take_body());
  const auto exchange = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  const Status accepted =
      elsewhere(tenant, Bytes(std::ssize(*value)), [tenant, name, value, exchange, change = std::move(change)] {
        const Status done = change(tenant, name, *value);
        return [exchange, done] {
          done ? exchange->respond({.status = 204}) : respond_error(std::move(*exchange), done.error());
        };
      });
  if (!accepted) respond_error(std::move(*exchange), accepted.error());
}

// Those of a tenant; with a key for all that names none, those of all.
void list(const identity::SecretVault& vault, RouteCall call) {
  const bool is_named = call.principal.tenant || !call.exchange.request().header("X-Fairlead-Tenant").empty();
  json secrets = json::array();
  for (const auto& entry : vault.list(is_named ? std::optional(tenant_named_by(call)) : std::nullopt)) {
    secrets.push_back({{"tenant", entry.tenant},
                       {"name", entry.name},
                       {"changed_ms", entry.changed_ms},
                       {"bytes", entry.bytes},
                       {"nodes", entry.is_of_cluster ? "all" : "this"}});
  }
  respond_json(std::move(call.exchange), 200, {{"secrets", std::move(secrets)}});
}

}  // namespace

Edge secret_edge(identity::SecretVault& vault, RunElsewhere elsewhere, std::function<std::int64_t()> wall_clock_ms) {
  Edge edge{.name = "secrets", .prefixes = {"/fairlead/v1/secrets"}, .errors = document_errors()};
  edge.routes.add(
      "GET", "/fairlead/v1/secrets", [&vault](RouteCall call) { list(vault, std::move(call)); }, Permission::kRead);
  const Change set = [&vault, now = std::move(wall_clock_ms)](const auto& tenant, const auto& name, const auto& value) {
    return vault.set(tenant, name, value, now());
  };
  const Change remove = [&vault](const auto& tenant, const auto& name, const auto&) {
    return vault.remove(tenant, name);
  };
  edge.routes.add(
      "PUT", "/fairlead/v1/secrets/{name}",
      [elsewhere, set](RouteCall call) { change_elsewhere(elsewhere, std::move(call), set); }, Permission::kDeploy);
  edge.routes.add(
      "DELETE", "/fairlead/v1/secrets/{name}",
      [elsewhere, remove](RouteCall call) { change_elsewhere(elsewhere, std::move(call), remove); },
      Permission::kDeploy);
  return edge;
}

}  // namespace fairlead
