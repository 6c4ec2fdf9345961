#include "edge/openfaas/system_secrets.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/base64.h"
#include "edge/json_body.h"
#include "edge/openfaas/function_name.h"
#include "edge/openfaas/openfaas_error.h"
#include "edge/openfaas/system_functions.h"

namespace fairlead::openfaas {
namespace {

using identity::SecretVault;
using nlohmann::json;

struct Secret {
  std::string tenant, name, value;
};

Result<Secret> read_secret(RouteCall& call, bool has_value) {
  const std::string_view text = call.exchange.request().body();
  if (text.size() > kMostDocumentBytes) {
    return fail(Errc::kTooLarge, "the document has {} bytes; it may have at most {}", text.size(), kMostDocumentBytes);
  }
  const auto body = parse_object(text);
  if (!body) return fail(body.error());
  Status status;
  JsonFields fields(*body, status);
  Secret secret;
  secret.name = fields.string("name").value_or("");
  const auto space = fields.string("namespace").value_or("");
  const auto value = fields.string("value");
  const auto raw = fields.string("rawValue");
  if (!status) return fail(status.error());
  auto tenant = tenant_of_namespace(call.principal, space.empty() ? call.target.query_value("namespace") : space);
  if (!tenant) return fail(tenant.error());
  secret.tenant = *std::move(tenant);
  if (!has_value) return secret;
  if (raw && !raw->empty()) {
    auto bytes = base64_decode("rawValue", *raw);
    if (!bytes) return fail(bytes.error());
    secret.value = *std::move(bytes);
  } else {
    secret.value = value.value_or("");
  }
  return secret;
}

bool has(const SecretVault& vault, const Secret& secret) {
  const auto entries = vault.list(secret.tenant);
  return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == secret.name; });
}

using Change = std::function<Status(const Secret&)>;

// `status`: of success.
void change(const RunElsewhere& elsewhere, RouteCall call, bool has_value, unsigned status, Change change) {
  auto read = read_secret(call, has_value);
  if (!read) return refuse(std::move(call.exchange), read.error());
  const auto secret = std::make_shared<const Secret>(*std::move(read));
  const auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  const Status accepted =
      elsewhere(secret->tenant, Bytes(std::ssize(secret->value)), [secret, answer, status, change = std::move(change)] {
        const Status done = change(*secret);
        return [answer, status, done] {
          done ? answer->respond({.status = status}) : refuse(std::move(*answer), done.error());
        };
      });
  if (!accepted) refuse(std::move(*answer), accepted.error());
}

void list(const SecretVault& vault, RouteCall call) {
  const auto tenant = tenant_of_namespace(call.principal, call.target.query_value("namespace"));
  if (!tenant) return refuse(std::move(call.exchange), tenant.error());
  json secrets = json::array();
  for (const auto& entry : vault.list(*tenant)) {
    secrets.push_back({{"name", entry.name}, {"namespace", namespace_of(entry.tenant)}});
  }
  respond_json(std::move(call.exchange), 200, secrets);
}

}  // namespace

void add_secret_routes(Routes& routes, RunElsewhere elsewhere, SecretVault& vault,
                       std::function<std::int64_t()> wall_clock_ms) {
  const Change make = [&vault, wall_clock_ms](const Secret& secret) -> Status {
    if (has(vault, secret)) return fail(Errc::kAlreadyExists, "secret '{}' is there already", secret.name);
    return vault.set(secret.tenant, secret.name, secret.value, wall_clock_ms());
  };
  const Change replace = [&vault, wall_clock_ms](const Secret& secret) -> Status {
    if (!has(vault, secret)) return fail(Errc::kNotFound, "there is no secret '{}'", secret.name.substr(0, 128));
    return vault.set(secret.tenant, secret.name, secret.value, wall_clock_ms());
  };
  const Change remove = [&vault](const Secret& secret) { return vault.remove(secret.tenant, secret.name); };
  const auto add = [&](std::string_view method, bool has_value, unsigned status, const Change& changed) {
    routes.add(
        method, "/system/secrets",
        [elsewhere, has_value, status, changed](RouteCall call) {
          change(elsewhere, std::move(call), has_value, status, changed);
        },
        Permission::kDeploy);
  };
  routes.add(
      "GET", "/system/secrets", [&vault](RouteCall call) { list(vault, std::move(call)); }, Permission::kRead);
  add("POST", true, 201, make);
  add("PUT", true, 200, replace);
  add("DELETE", false, 202, remove);
}

}  // namespace fairlead::openfaas
