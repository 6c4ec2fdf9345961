#include "edge/native/keys.h"

#include <memory>
#include <utility>

#include "edge/error_document.h"
#include "edge/json_body.h"

namespace fairlead {

using nlohmann::json;

namespace {

constexpr std::int64_t kMostSeconds = std::int64_t{10} * 365 * 86'400;
constexpr std::int64_t kDefaultGraceSeconds = 86'400;

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

Result<std::optional<std::int64_t>> seconds_of(JsonFields& fields, const char* name, Status& status) {
  const auto seconds = fields.integer(name);
  if (!status) return fail(status.error());
  if (!seconds) return std::nullopt;
  if (*seconds >= 0 && *seconds <= kMostSeconds) return std::optional<std::int64_t>(*seconds);
  return fail(Errc::kInvalidArgument, "{} is {}; it must be between 0 and {}", name, *seconds, kMostSeconds);
}

Result<identity::KeyRequest> key_request(const json& body, std::int64_t now_ms) {
  identity::KeyRequest request;
  Status status;
  JsonFields fields(body, status);
  if (const auto role = fields.string("role")) {
    const auto known = role_named(*role);
    if (!known) {
      return fail(Errc::kInvalidArgument, "role is '{}'; it must be reader, invoker, deployer or operator",
                  role->substr(0, 64));
    }
    request.role = *known;
  }
  if (const auto tenant = fields.string("tenant")) request.tenant = std::string(*tenant);
  if (const auto note = fields.string("note")) request.note = std::string(*note);
  const auto expires = seconds_of(fields, "expires_seconds", status);
  if (!status) return fail(status.error());
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
  Status status;
  JsonFields fields(*body, status);
  const auto grace = seconds_of(fields, "grace_seconds", status);
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
