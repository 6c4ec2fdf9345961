#include "edge/native/keys.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "edge/error_document.h"
#include "edge/json_body.h"

namespace fairlead {

using nlohmann::json;

namespace {

constexpr std::int64_t kMostSeconds = std::int64_t{10} * 365 * 86'400;
constexpr std::int64_t kDefaultGraceSeconds = 86'400;
constexpr std::string_view kAllTenants = "*";
constexpr std::size_t kMostQuoted = 64;

json key_json(const identity::ApiKey& key) {
  return {{"id", key.id},
          {"role", role_name(key.role)},
          {"tenant", key.tenant ? json(*key.tenant) : json()},
          {"created_ms", key.created_ms},
          {"expires_ms", key.expires_ms ? json(*key.expires_ms) : json()},
          {"note", key.note},
          {"nodes", identity::is_of_cluster(key.id) ? "all" : "this"}};
}

json issued_json(const identity::IssuedKey& issued) {
  json fields = key_json(issued.key);
  fields["secret"] = issued.secret;
  fields["token"] = issued.token();
  return fields;
}

// An empty body is an object without fields.
Result<json> fields_of(RouteCall& call) {
  const std::string_view body = call.exchange.request().body();
  if (body.empty()) return json::object();
  return parse_object(body);
}

// Not JsonFields::integer: beyond an int it names the int's bounds, which are not these.
Result<std::optional<std::int64_t>> seconds_of(const json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end() || found->is_null()) return std::nullopt;
  // What is negative is above the bound as a number without a sign.
  if (found->is_number_integer() && found->get<std::uint64_t>() <= std::uint64_t{kMostSeconds}) {
    return std::optional<std::int64_t>(found->get<std::int64_t>());
  }
  return fail(Errc::kInvalidArgument, "{} is {}; it must be a whole number between 0 and {}", name,
              to_text(*found).substr(0, kMostQuoted), kMostSeconds);
}

// A tenant or an end that is misspelt would be a key that may more, or lasts longer, than was meant.
Status check_members(const json& body) {
  constexpr std::array<std::string_view, 4> kMembers{"tenant", "role", "expires_seconds", "note"};
  for (const auto& member : body.items()) {
    if (std::find(kMembers.begin(), kMembers.end(), member.key()) != kMembers.end()) continue;
    return fail(Errc::kInvalidArgument, "'{}' is none of a key's members; they are {}",
                member.key().substr(0, kMostQuoted), fmt::join(kMembers, ", "));
  }
  return {};
}

Result<identity::KeyRequest> key_request(const json& body, std::int64_t now_ms) {
  if (Status known = check_members(body); !known) return fail(known.error());
  identity::KeyRequest request;
  Status status;
  JsonFields fields(body, status);
  if (const auto role = fields.string("role")) {
    const auto known = role_named(*role);
    if (!known) {
      return fail(Errc::kInvalidArgument, "role is '{}'; it must be reader, invoker, deployer or operator",
                  role->substr(0, kMostQuoted));
    }
    request.role = *known;
  }
  const auto tenant = fields.string("tenant");
  if (const auto note = fields.string("note")) request.note = std::string(*note);
  if (!status) return fail(status.error());
  if (!tenant) {
    return fail(Errc::kInvalidArgument, "tenant is missing; it must be a tenant's name, or '{}' for all tenants",
                kAllTenants);
  }
  if (*tenant != kAllTenants) request.tenant = std::string(*tenant);
  const auto expires = seconds_of(body, "expires_seconds");
  if (!expires) return fail(expires.error());
  if (*expires) request.expires_ms = now_ms + **expires * 1'000;
  return request;
}

struct Keys {
  identity::KeyDesk& desk;
  RunElsewhere elsewhere;
  PublishDocuments publish;
};

using Change = identity::KeyDesk::Change;

void answer(net::HttpExchange exchange, const Change& change) {
  if (!change.issued) return exchange.respond({.status = 204});
  respond_json(std::move(exchange), 201, issued_json(*change.issued));
}

void make_for_all(const std::shared_ptr<const Keys>& keys, net::HttpExchange exchange, Change change) {
  const auto client = std::make_shared<net::HttpExchange>(std::move(exchange));
  const auto planned = std::make_shared<const Change>(std::move(change));
  const Status accepted = keys->elsewhere("", Bytes(0), [keys, client, planned] {
    const auto revision = keys->publish(planned->documents);
    return [keys, client, planned, revision] {
      if (!revision) return respond_error(std::move(*client), revision.error());
      if (Status made = keys->desk.carry_out(*planned, *revision); !made) {
        return respond_error(std::move(*client), made.error());
      }
      answer(std::move(*client), *planned);
    };
  });
  if (!accepted) respond_error(std::move(*client), accepted.error());
}

void make(const std::shared_ptr<const Keys>& keys, net::HttpExchange exchange, Result<Change> change) {
  if (!change) return respond_error(std::move(exchange), change.error());
  if (change->is_of_cluster()) return make_for_all(keys, std::move(exchange), *std::move(change));
  if (Status made = keys->desk.carry_out(*change); !made) return respond_error(std::move(exchange), made.error());
  answer(std::move(exchange), *change);
}

void issue(const std::shared_ptr<const Keys>& keys, RouteCall call) {
  const auto body = fields_of(call);
  if (!body) return respond_error(std::move(call.exchange), body.error());
  const auto request = key_request(*body, keys->desk.now_ms());
  if (!request) return respond_error(std::move(call.exchange), request.error());
  make(keys, std::move(call.exchange), keys->desk.plan_issue(*request));
}

void rotate(const std::shared_ptr<const Keys>& keys, RouteCall call) {
  const auto body = fields_of(call);
  if (!body) return respond_error(std::move(call.exchange), body.error());
  const auto grace = seconds_of(*body, "grace_seconds");
  if (!grace) return respond_error(std::move(call.exchange), grace.error());
  auto change = keys->desk.plan_rotate(call.parameter("key"), grace->value_or(kDefaultGraceSeconds) * 1'000);
  make(keys, std::move(call.exchange), std::move(change));
}

void list(const std::shared_ptr<const Keys>& keys, RouteCall call) {
  json all = json::array();
  for (const identity::ApiKey& key : keys->desk.keyring().keys()) all.push_back(key_json(key));
  respond_json(std::move(call.exchange), 200, {{"keys", std::move(all)}});
}

void revoke(const std::shared_ptr<const Keys>& keys, RouteCall call) {
  auto change = keys->desk.plan_revoke(call.parameter("key"));
  make(keys, std::move(call.exchange), std::move(change));
}

}  // namespace

Edge key_edge(identity::KeyDesk& desk, RunElsewhere elsewhere, PublishDocuments publish) {
  Edge edge{.name = "keys", .prefixes = {"/fairlead/v1/keys"}, .errors = document_errors()};
  const auto keys = std::make_shared<const Keys>(Keys{desk, std::move(elsewhere), std::move(publish)});
  using Handle = void (*)(const std::shared_ptr<const Keys>&, RouteCall);
  const auto add = [&](std::string_view method, std::string_view pattern, Handle handle) {
    edge.routes.add(
        method, pattern, [keys, handle](RouteCall call) { handle(keys, std::move(call)); }, Permission::kOperate);
  };
  add("POST", "/fairlead/v1/keys", issue);
  add("GET", "/fairlead/v1/keys", list);
  add("DELETE", "/fairlead/v1/keys/{key}", revoke);
  add("POST", "/fairlead/v1/keys/{key}/rotate", rotate);
  return edge;
}

}  // namespace fairlead
