#include "edge/native/dead_letters.h"

#include <memory>
#include <utility>

#include "base/base64.h"
#include "edge/error_document.h"
#include "edge/function_in_path.h"
#include "edge/json_body.h"
#include "edge/query.h"
#include "model/version.h"

namespace fairlead {

using nlohmann::json;

namespace {

constexpr std::size_t kDefaultDeadLetters = 100;
constexpr std::size_t kMaxDeadLetters = 10'000;

json dead_letter_json(const DeadLetter& letter) {
  return {{"request_id", letter.request_id},
          {"function", letter.function},
          {"error_type", letter.error_type},
          {"error_message", letter.error_message},
          {"attempts", letter.attempts},
          {"accepted_ms", letter.accepted_ms},
          {"failed_ms", letter.failed_ms},
          {"version", version_name(letter.version)},
          {"payload_base64", base64_encode(letter.payload)}};
}

// The function that ?function= names, if the caller's; "": all, for who sees all tenants.
Result<std::string> named_function(NodeService& node, const RouteCall& call) {
  std::string function(call.target.query_value("function"));
  if (call.principal.tenant && function.empty()) {
    return fail(Errc::kForbidden, "a tenant's key sees the dead letters of one function: add ?function=NAME");
  }
  if (Status seen = check_seen(node, call.principal, function); !seen) return fail(seen.error());
  return function;
}

void list(NodeService& node, RouteCall call) {
  const auto limit = query_number<std::size_t>(call.target, "limit", kDefaultDeadLetters, 1, kMaxDeadLetters);
  if (!limit) return respond_error(std::move(call.exchange), limit.error());
  auto function = named_function(node, call);
  if (!function) return respond_error(std::move(call.exchange), function.error());
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  node.dead_letters(*std::move(function), *limit, [answer](Result<std::vector<DeadLetter>> letters) {
    if (!letters) return respond_error(std::move(*answer), letters.error());
    json list = json::array();
    for (const DeadLetter& letter : *letters) list.push_back(dead_letter_json(letter));
    respond_json(std::move(*answer), 200, {{"dead_letters", std::move(list)}});
  });
}

void redrive(NodeService& node, RouteCall call, std::string function) {
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  node.event_service().redrive(std::move(function), [answer](Result<RedriveResult> result) {
    if (!result) return respond_error(std::move(*answer), result.error());
    respond_json(std::move(*answer), 200, {{"redriven", result->redriven}, {"left", result->left}});
  });
}

// The function stands in the path, which the audit log keeps.
void redrive_one(NodeService& node, RouteCall call) {
  auto function = function_from(call);
  if (!function) return respond_error(std::move(call.exchange), function.error());
  if (Status seen = check_seen(node, call.principal, *function); !seen) {
    return respond_error(std::move(call.exchange), seen.error());
  }
  redrive(node, std::move(call), *std::move(function));
}

void redrive_all(NodeService& node, RouteCall call) {
  if (!call.principal.tenant) return redrive(node, std::move(call), "");
  respond_error(
      std::move(call.exchange),
      Error{Errc::kForbidden, "a tenant's key redrives the dead letters of one function: name it in the path"});
}

}  // namespace

void add_dead_letter_routes(Routes& routes, NodeService& node) {
  const auto add = [&](Permission permission, std::string_view method, std::string_view pattern,
                       void (*handle)(NodeService&, RouteCall)) {
    routes.add(
        method, pattern, [&node, handle](RouteCall call) { handle(node, std::move(call)); }, permission);
  };
  add(Permission::kRead, "GET", "/fairlead/v1/dead-letters", list);
  add(Permission::kDeploy, "POST", "/fairlead/v1/dead-letters/redrive", redrive_all);
  add(Permission::kDeploy, "POST", "/fairlead/v1/functions/{function}/dead-letters/redrive", redrive_one);
}

}  // namespace fairlead
