#include "edge/lambda/lambda_provisioned.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "edge/error_document.h"
#include "edge/function_in_path.h"
#include "edge/json_body.h"
#include "edge/lambda/lambda_json.h"
#include "model/warmth_tags.h"

namespace fairlead {

using nlohmann::json;

namespace {

struct Kept {
  std::size_t ready = 0;  // of those that are wanted
  std::string lacking;
};

Kept kept_of(NodeService& node, const std::string& function) {
  const NodeStatus status = node.status();
  for (const FunctionStatus& known : status.functions) {
    if (known.name != function) continue;
    const auto is_ready = [&](const InstanceView& instance) {
      return instance.flow == known.flow.flow && instance.seated && instance.state != InstanceState::kStarting;
    };
    const auto ready = std::count_if(status.instances.begin(), status.instances.end(), is_ready);
    return {.ready = static_cast<std::size_t>(ready), .lacking = known.share.lacking};
  }
  return {};
}

json config_json(const FunctionRecord& record, const Kept& kept) {
  const auto wanted = static_cast<std::size_t>(instances_kept(record.config.tags));
  const std::size_t ready = std::min(kept.ready, wanted);
  json body{{"RequestedProvisionedConcurrentExecutions", wanted},
            {"AvailableProvisionedConcurrentExecutions", ready},
            {"AllocatedProvisionedConcurrentExecutions", ready},
            {"Status", ready == wanted        ? "READY"
                       : kept.lacking.empty() ? "IN_PROGRESS"
                                              : "FAILED"},
            {"LastModified", lambda_timestamp(record.last_modified_ms)}};
  if (ready != wanted && !kept.lacking.empty()) body["StatusReason"] = kept.lacking;
  return body;
}

void respond_none(RouteCall call, const std::string& function) {
  respond_error(std::move(call.exchange),
                ErrorDocument{.status = 404,
                              .type = "ProvisionedConcurrencyConfigNotFoundException",
                              .message = "No Provisioned Concurrency Config found for function " + function});
}

Result<int> read_wanted(std::string_view text) {
  const auto body = parse_object(text);
  if (!body) return fail(body.error());
  Status status;
  const auto instances = JsonFields(*body, status).integer("ProvisionedConcurrentExecutions");
  if (!status) return fail(status.error());
  if (instances && *instances >= 1 && *instances <= kMaxReplicas) return static_cast<int>(*instances);
  return fail(Errc::kInvalidArgument, "ProvisionedConcurrentExecutions must be a number between 1 and {}",
              kMaxReplicas);
}

void keep(NodeService& node, const FunctionRecord& record, int instances, NodeService::Callback<FunctionRecord> done) {
  FunctionConfig config = record.config;
  auto tags = with_instances_kept(std::move(config.tags), instances);
  if (!tags) return done(fail(tags.error()));
  config.tags = *std::move(tags);
  node.update_config(record.name, std::move(config), std::move(done));
}

void put(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  const auto wanted = read_wanted(call.exchange.request().body());
  if (!wanted) return respond_error(std::move(call.exchange), wanted.error());
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  keep(node, *record, *wanted, [&node, answer](Result<FunctionRecord> changed) {
    if (!changed) return respond_error(std::move(*answer), changed.error());
    respond_json(std::move(*answer), 202, config_json(*changed, kept_of(node, changed->name)));
  });
}

void get(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  if (instances_kept(record->config.tags) == 0) return respond_none(std::move(call), record->name);
  respond_json(std::move(call.exchange), 200, config_json(*record, kept_of(node, record->name)));
}

void remove(NodeService& node, RouteCall call) {
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  if (instances_kept(record->config.tags) == 0) return respond_none(std::move(call), record->name);
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  keep(node, *record, 0, [answer](Result<FunctionRecord> changed) {
    if (!changed) return respond_error(std::move(*answer), changed.error());
    answer->respond({.status = 204});
  });
}

// There are no versions, so there is one at most, and never a second page.
void list(NodeService& node, RouteCall call, const FunctionRecord& record) {
  json configs = json::array();
  if (instances_kept(record.config.tags) > 0) {
    configs.push_back(config_json(record, kept_of(node, record.name)));
    configs.back()["FunctionArn"] = function_arn(record.name) + ":$LATEST";
  }
  respond_json(std::move(call.exchange), 200, {{"ProvisionedConcurrencyConfigs", std::move(configs)}});
}

// Lambda has one path for both.
void get_or_list(NodeService& node, RouteCall call) {
  if (call.target.query_value("List") != "ALL") return get(node, std::move(call));
  const auto record = find_function(node, call);
  if (!record) return respond_error(std::move(call.exchange), record.error());
  list(node, std::move(call), *record);
}

}  // namespace

void add_provisioned_routes(Routes& routes, NodeService& node) {
  const auto add = [&](Permission permission, std::string_view method, void (*handle)(NodeService&, RouteCall)) {
    routes.add(
        method, "/2019-09-30/functions/{function}/provisioned-concurrency",
        [&node, handle](RouteCall call) { handle(node, std::move(call)); }, permission);
  };
  add(Permission::kDeploy, "PUT", put);
  add(Permission::kRead, "GET", get_or_list);
  add(Permission::kDeploy, "DELETE", remove);
}

}  // namespace fairlead
