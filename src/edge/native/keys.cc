#include "edge/native/keys.h"

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
          {"note", key.note}};
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

void issue(identity::KeyDesk& desk, RouteCall call) {
  const auto body = fields_of(call);
  if (!body) return respond_error(std::move(call.exchange), body.error());
  const auto request = key_request(*body, desk.now_ms());
  if (!request) return respond_error(std::move(call.exchange), request.error());
  const auto issued = desk.issue(*request);
  if (!issued) return respond_error(std::move(call.exchange), issued.error());
  respond_json(std::move(call.exchange), 201, issued_json(*issued));
}

void rotate(identity::KeyDesk& desk, RouteCall call) {
  const auto body = fields_of(call);
  if (!body) return respond_error(std::move(call.exchange), body.error());
  Status status;
  JsonFields fields(*body, status);
  const auto grace = seconds_of(fields, "grace_seconds", status);
  if (!grace) return respond_error(std::move(call.exchange), grace.error());
  const auto issued = desk.rotate(call.parameter("key"), grace->value_or(kDefaultGraceSeconds) * 1'000);
  if (!issued) return respond_error(std::move(call.exchange), issued.error());
  respond_json(std::move(call.exchange), 201, issued_json(*issued));
}

void list(identity::KeyDesk& desk, RouteCall call) {
  json keys = json::array();
  for (const identity::ApiKey& key : desk.keyring().keys()) keys.push_back(key_json(key));
  respond_json(std::move(call.exchange), 200, {{"keys", std::move(keys)}});
}

void revoke(identity::KeyDesk& desk, RouteCall call) {
  if (Status revoked = desk.revoke(call.parameter("key")); !revoked) {
    return respond_error(std::move(call.exchange), revoked.error());
  }
  call.exchange.respond({.status = 204});
}

}  // namespace

Edge key_edge(identity::KeyDesk& desk) {
  Edge edge{.name = "keys", .prefixes = {"/fairlead/v1/keys"}, .errors = document_errors()};
  using Handle = void (*)(identity::KeyDesk&, RouteCall);
  const auto add = [&](std::string_view method, std::string_view pattern, Handle handle) {
    edge.routes.add(
        method, pattern, [&desk, handle](RouteCall call) { handle(desk, std::move(call)); }, Permission::kOperate);
  };
  add("POST", "/fairlead/v1/keys", issue);
  add("GET", "/fairlead/v1/keys", list);
  add("DELETE", "/fairlead/v1/keys/{key}", revoke);
  add("POST", "/fairlead/v1/keys/{key}/rotate", rotate);
  return edge;
}

}  // namespace fairlead
