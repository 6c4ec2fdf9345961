#include "edge/console/sign_in.h"

#include <algorithm>
#include <utility>

#include "edge/error_document.h"
#include "edge/json_body.h"
#include "edge/session_cookie.h"

namespace fairlead {

using nlohmann::json;

namespace {

// `key`: null for who came in without one, over the operator's socket or to a node that is open.
json viewer_json(const Principal& who, const identity::ApiKey* key) {
  return {{"name", who.name},
          {"key", key == nullptr ? json() : json(key->id)},
          {"note", key == nullptr ? json() : json(key->note)},
          {"role", role_name(who.role)},
          {"tenant", who.tenant ? json(*who.tenant) : json()}};
}

Status check_console_header(const net::HttpRequest& request) {
  if (!request.header(kConsoleHeader).empty()) return {};
  return fail(Errc::kForbidden, "{} is missing: sessions are for the console; use an API key", kConsoleHeader);
}

void open(const identity::Keyring& keyring, std::int64_t now_ms, RouteCall call) {
  const net::HttpRequest& request = call.exchange.request();
  if (Status header = check_console_header(request); !header)
    return respond_error(std::move(call.exchange), header.error());
  // A session does not make another one: it would never end.
  const identity::ApiKey* key = request.header("Authorization").empty() ? nullptr : keyring.find(call.principal.name);
  if (key == nullptr) {
    return respond_error(std::move(call.exchange),
                         Error{Errc::kInvalidArgument, "a session needs an API key: Authorization: Bearer ID.SECRET"});
  }
  const auto life = std::chrono::duration_cast<std::chrono::milliseconds>(kSessionLife).count();
  const std::int64_t until = std::min(now_ms + life, key->expires_ms.value_or(now_ms + life));
  const bool is_secure = call.target.query_value("secure") == "1";
  std::string cookie = session_cookie(request, keyring.open_session(key->id, until), is_secure);
  call.exchange.respond({.headers = {{"Content-Type", "application/json"},
                                     {"Cache-Control", "no-store"},
                                     {"Set-Cookie", std::move(cookie)}},
                         .body = to_text(viewer_json(call.principal, key))});
}

void end(RouteCall call) {
  const net::HttpRequest& request = call.exchange.request();
  if (Status header = check_console_header(request); !header)
    return respond_error(std::move(call.exchange), header.error());
  std::string cookie = session_cookie(request, "", call.target.query_value("secure") == "1");
  call.exchange.respond({.status = 204, .headers = {{"Set-Cookie", std::move(cookie)}}});
}

}  // namespace

void add_sign_in_routes(Routes& routes, const identity::Keyring& keyring, std::function<std::int64_t()> wall_clock_ms) {
  routes.add(
      "POST", "/console/session",
      [&keyring, clock = std::move(wall_clock_ms)](RouteCall call) { open(keyring, clock(), std::move(call)); },
      Permission::kRead);
  routes.add(
      "GET", "/console/session",
      [&keyring](RouteCall call) {
        const json viewer = viewer_json(call.principal, keyring.find(call.principal.name));
        call.exchange.respond({.headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}},
                               .body = to_text(viewer)});
      },
      Permission::kRead);
  routes.add("POST", "/console/session/end", end, Permission::kAnyone);
}

}  // namespace fairlead
