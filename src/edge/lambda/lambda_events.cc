#include "edge/lambda/lambda_events.h"

#include <memory>
#include <utility>

#include "edge/error_document.h"
#include "edge/function_in_path.h"
#include "edge/json_body.h"
#include "model/function.h"

namespace fairlead {

using nlohmann::json;

namespace {

// DestinationConfig is there and empty, as with Lambda where there are no destinations.
json config_json(const std::string& function, const EventInvokeConfig& config) {
  json body{{"FunctionArn", function_arn(function) + ":$LATEST"},
            {"LastModified", static_cast<double>(config.last_modified_ms) / 1000},
            {"DestinationConfig", {{"OnSuccess", json::object()}, {"OnFailure", json::object()}}}};
  if (config.retries) body["MaximumRetryAttempts"] = *config.retries;
  if (config.age_seconds) body["MaximumEventAgeInSeconds"] = *config.age_seconds;
  return body;
}

// A destination that is not reached would lose what its owner counts on.
Status check_destinations(const json& body, Status& status) {
  JsonFields fields(body, status);
  auto destinations = fields.object("DestinationConfig");
  for (const char* const end : {"OnSuccess", "OnFailure"}) {
    auto destination = destinations ? destinations->object(end) : std::nullopt;
    if (destination && destination->is_set("Destination")) {
      return fail(Errc::kInvalidArgument,
                  "DestinationConfig.{}.Destination: there are no destinations; what failed for good is kept as a dead "
                  "letter (fairlead dead-letters)",
                  end);
    }
  }
  return status;
}

// What the body says, else what `config` has.
Result<EventInvokeConfig> read_config(std::string_view text, EventInvokeConfig config) {
  const auto body = parse_object(text);
  if (!body) return fail(body.error());
  Status status;
  if (Status supported = check_destinations(*body, status); !supported) return fail(supported.error());
  JsonFields fields(*body, status);
  if (const auto retries = fields.integer("MaximumRetryAttempts")) config.retries = retries;
  if (const auto age = fields.integer("MaximumEventAgeInSeconds")) config.age_seconds = age;
  if (!status) return fail(status.error());
  return config;
}

void set(NodeService& node, RouteCall call, const std::string& function, EventInvokeConfig before) {
  const auto config = read_config(call.exchange.request().body(), before);
  if (!config) return respond_error(std::move(call.exchange), config.error());
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  node.event_service().set_config(function, *config, [answer, function](Result<EventInvokeConfig> set) {
    if (!set) return respond_error(std::move(*answer), set.error());
    respond_json(std::move(*answer), 200, config_json(function, *set));
  });
}

// All of it: what the body leaves out is the default again.
void put(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  set(node, std::move(call), record->name, {});
}

void update(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto before = node.event_service().config(record->name);
  if (!before) return respond_error(std::move(call.exchange), before.error());
  set(node, std::move(call), record->name, *before);
}

void get(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto config = node.event_service().config(record->name);
  if (!config) return respond_error(std::move(call.exchange), config.error());
  respond_json(std::move(call.exchange), 200, config_json(record->name, *config));
}

void remove(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  node.event_service().remove_config(record->name, [answer](Status removed) {
    if (!removed) return respond_error(std::move(*answer), removed.error());
    answer->respond({.status = 204});
  });
}

// There are no versions, so there is one at most, and never a second page.
void list(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  json configs = json::array();
  const auto config = node.event_service().config(record->name);
  if (config) configs.push_back(config_json(record->name, *config));
  respond_json(std::move(call.exchange), 200, {{"FunctionEventInvokeConfigs", std::move(configs)}});
}

}  // namespace

void add_event_routes(Routes& routes, NodeService& node) {
  const auto add = [&](Permission permission, std::string_view method, std::string_view pattern,
                       void (*handle)(NodeService&, RouteCall)) {
    routes.add(
        method, pattern, [&node, handle](RouteCall call) { handle(node, std::move(call)); }, permission);
  };
  constexpr std::string_view kConfig = "/2019-09-25/functions/{function}/event-invoke-config";
  add(Permission::kDeploy, "PUT", kConfig, put);
  add(Permission::kDeploy, "POST", kConfig, update);
  add(Permission::kRead, "GET", kConfig, get);
  add(Permission::kDeploy, "DELETE", kConfig, remove);
  add(Permission::kRead, "GET", "/2019-09-25/functions/{function}/event-invoke-config/list", list);
}

}  // namespace fairlead
