#include "edge/openfaas/system_functions.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "edge/json_body.h"
#include "edge/openfaas/deployment.h"
#include "edge/openfaas/function_name.h"
#include "edge/openfaas/openfaas_error.h"
#include "model/image.h"
#include "model/tenant.h"
#include "model/warmth_tags.h"

namespace fairlead::openfaas {
namespace {

using nlohmann::json;
using RolloutsPtr = std::shared_ptr<Rollouts>;

// The whole of a small document. kTooLarge, kInvalidArgument.
Result<json> document_of(RouteCall& call) {
  const std::string_view body = call.exchange.request().body();
  if (body.size() <= kMostDocumentBytes) return parse_object(body);
  return fail(Errc::kTooLarge, "the document has {} bytes; it may have at most {}", body.size(), kMostDocumentBytes);
}

// ---- what there is

// Of a function that has no record yet.
json rollout_json(const Rollout& rollout) {
  json status{{"name", rollout.function},  {"namespace", namespace_of(rollout.tenant)},
              {"image", rollout.image},    {"envProcess", ""},
              {"envVars", json::object()}, {"secrets", json::array()},
              {"labels", json::object()},  {"annotations", json::object()},
              {"invocationCount", 0.0},    {"replicas", 0},
              {"availableReplicas", 0},    {"createdAt", rfc3339(rollout.begun_ms)}};
  if (!rollout.error.empty()) status["annotations"]["fairlead/error"] = rollout.error;
  return status;
}

// The last deployment of a function that is there, where it failed.
void add_failure(const Rollouts& rollouts, json& status) {
  const Rollout* rollout = rollouts.find(status["name"].get<std::string>());
  if (rollout != nullptr && !rollout->error.empty()) status["annotations"]["fairlead/error"] = rollout->error;
}

void list(NodeService& node, const Rollouts& rollouts, RouteCall call) {
  const auto tenant = tenant_of_namespace(call.principal, call.target.query_value("namespace"));
  if (!tenant) return refuse(std::move(call.exchange), tenant.error());
  const NodeStatus status = node.status();
  std::map<std::string_view, const FunctionStatus*> by_name;
  for (const FunctionStatus& function : status.functions) by_name[function.name] = &function;
  json all = json::array();
  std::set<std::string> known;
  for (const FunctionRecord& record : node.list_functions()) {
    known.insert(record.name);
    if (tenant_of(record.config.tags) != *tenant) continue;
    const auto found = by_name.find(record.name);
    all.push_back(status_json(record, counts_of(record, found == by_name.end() ? nullptr : found->second), false));
    add_failure(rollouts, all.back());
  }
  for (const Rollout& rollout : rollouts.all()) {
    if (rollout.tenant == *tenant && !known.contains(rollout.function)) all.push_back(rollout_json(rollout));
  }
  respond_json(std::move(call.exchange), 200, all);
}

FunctionName named_by(const RouteCall& call) {
  FunctionName name = split_name(call.parameter("name"));
  if (name.space.empty()) name.space = call.target.query_value("namespace");
  return name;
}

void get(NodeService& node, const Rollouts& rollouts, RouteCall call) {
  const FunctionName name = named_by(call);
  const auto record = find_function(node, call.principal, name);
  if (!record) {
    const auto tenant = tenant_of_namespace(call.principal, name.space);
    const Rollout* rollout = rollouts.find(name.name);
    const bool is_there = tenant && rollout != nullptr && rollout->tenant == *tenant;
    if (is_there) return respond_json(std::move(call.exchange), 200, rollout_json(*rollout));
    return refuse(std::move(call.exchange), record.error());
  }
  const NodeStatus all = node.status();
  const auto found = std::find_if(all.functions.begin(), all.functions.end(),
                                  [&](const FunctionStatus& each) { return each.name == record->name; });
  const bool with_usage = !call.target.query_value("usage").empty();
  json status = status_json(*record, counts_of(*record, found == all.functions.end() ? nullptr : &*found), with_usage);
  add_failure(rollouts, status);
  respond_json(std::move(call.exchange), 200, status);
}

// ---- deployments

struct Request {
  Deployment deployment;
  std::string tenant;
  CodeSource code;
};

Result<Request> read_request(RouteCall& call) {
  const auto body = document_of(call);
  if (!body) return fail(body.error());
  auto deployment = read_deployment(*body);
  if (!deployment) return fail(deployment.error());
  auto tenant = tenant_of_namespace(call.principal, deployment->space);
  if (!tenant) return fail(tenant.error());
  if (*tenant != kDefaultTenant) deployment->config.tags[kTenantTag] = *tenant;
  Request request{.deployment = *std::move(deployment), .tenant = *std::move(tenant), .code = {}};
  request.code.image = request.deployment.image;
  // As images.md has it: folders of the node's machine are for its operators there.
  if (parse_image_reference("image", request.code.image)->layout_dir.empty()) return request;
  net::HttpRequest& http = call.exchange.request();
  if (http.peer_is_local() && call.principal.may(Role::kOperator)) request.code.reader = http.caller_uid();
  if (request.code.reader) return request;
  return fail(Errc::kInvalidArgument,
              "image is '{}': a folder is for operators on the node's own machine; name an image in a registry",
              request.code.image.substr(0, 256));
}

Rollouts::Ended begin(Rollouts& rollouts, RouteCall call, const Request& request) {
  return rollouts.begin(std::move(call.exchange), {.function = request.deployment.service,
                                                   .tenant = request.tenant,
                                                   .image = request.deployment.image,
                                                   .begun_ms = wall_clock_ms(),
                                                   .error = {}});
}

NodeService::Callback<FunctionRecord> told(Rollouts::Ended ended) {
  return [ended = std::move(ended)](const Result<FunctionRecord>& record) {
    ended(record ? Status() : Status(fail(record.error())));
  };
}

void create(NodeService& node, Rollouts& rollouts, RouteCall call) {
  auto request = read_request(call);
  if (!request) return refuse(std::move(call.exchange), request.error());
  const auto ended = begin(rollouts, std::move(call), *request);
  node.create_function(request->deployment.service, std::move(request->deployment.config), std::move(request->code),
                       told(ended));
}

// The code first: while it is fetched the function is what it was. Its configuration is valid, so that little can go wrong between.
void update(NodeService& node, Rollouts& rollouts, RouteCall call) {
  auto request = read_request(call);
  if (!request) return refuse(std::move(call.exchange), request.error());
  const auto record = find_function(node, call.principal, {request->deployment.service, request->deployment.space});
  if (!record) return refuse(std::move(call.exchange), record.error());
  if (record->config.package_type != PackageType::kImage) {
    return refuse(
        std::move(call.exchange),
        Error{Errc::kConflict,
              fmt::format("function {} was deployed as code, and is no image; remove it first", record->name)});
  }
  const auto ended = begin(rollouts, std::move(call), *request);
  const std::string name = record->name;
  node.update_code(
      name, std::move(request->code),
      [&node, name, ended, config = std::move(request->deployment.config)](const Result<FunctionRecord>& changed) {
        if (!changed) return ended(fail(changed.error()));
        node.update_config(name, config, told(ended));
      });
}

void remove(NodeService& node, Rollouts& rollouts, RouteCall call) {
  const auto body = document_of(call);
  if (!body) return refuse(std::move(call.exchange), body.error());
  Status status;
  JsonFields fields(*body, status);
  const FunctionName name{std::string(fields.string("functionName").value_or("")),
                          std::string(fields.string("namespace").value_or(call.target.query_value("namespace")))};
  if (!status) return refuse(std::move(call.exchange), status.error());
  const auto record = find_function(node, call.principal, name);
  if (!record) {
    // Of a deployment that failed there is nothing but that.
    const Rollout* rollout = rollouts.find(name.name);
    const auto tenant = tenant_of_namespace(call.principal, name.space);
    if (rollout == nullptr || rollout->error.empty() || !tenant || rollout->tenant != *tenant) {
      return refuse(std::move(call.exchange), record.error());
    }
    rollouts.forget(name.name);
    return call.exchange.respond({.status = 202});
  }
  rollouts.forget(name.name);
  const auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  node.delete_function(record->name, [answer](const Status& removed) {
    removed ? answer->respond({.status = 202}) : refuse(std::move(*answer), removed.error());
  });
}

// ---- scale

// 0 lets instances go: none is kept, and those there are end.
void scale(NodeService& node, RouteCall call) {
  const auto body = document_of(call);
  if (!body) return refuse(std::move(call.exchange), body.error());
  Status status;
  JsonFields fields(*body, status);
  FunctionName name = named_by(call);
  if (const auto space = fields.string("namespace"); space && name.space.empty()) name.space = *space;
  const auto service = fields.string("serviceName");
  const auto replicas = fields.integer("replicas");
  if (status && (!replicas || *replicas < 0 || *replicas > kMaxReplicas)) {
    status = fail(Errc::kInvalidArgument, "replicas must be a number between 0 and {}", kMaxReplicas);
  }
  if (status && service && !service->empty() && split_name(*service).name != name.name) {
    status = fail(Errc::kInvalidArgument, "serviceName is '{}', and the path names '{}'", service->substr(0, 128),
                  name.name.substr(0, 128));
  }
  if (!status) return refuse(std::move(call.exchange), status.error());
  const auto record = find_function(node, call.principal, name);
  if (!record) return refuse(std::move(call.exchange), record.error());
  FunctionConfig config = record->config;
  auto tags = with_instances_kept(std::move(config.tags), *replicas);
  if (!tags) return refuse(std::move(call.exchange), tags.error());
  config.tags = *std::move(tags);
  if (*replicas == 0) config.tags[std::string(kUnloadedAtTag)] = std::to_string(wall_clock_ms());
  const auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  node.update_config(record->name, std::move(config), [answer](const Result<FunctionRecord>& changed) {
    changed ? answer->respond({.status = 202}) : refuse(std::move(*answer), changed.error());
  });
}

// ---- the rest

// Of all that who asks sees: its own, and with a key for all those of whoever has functions.
void namespaces(NodeService& node, RouteCall call) {
  std::set<std::string> tenants{call.principal.tenant.value_or(kDefaultTenant)};
  for (const FunctionRecord& record : node.list_functions()) {
    const std::string tenant = tenant_of(record.config.tags);
    if (call.principal.sees(tenant)) tenants.insert(tenant);
  }
  json names = json::array();
  for (const std::string& tenant : tenants) names.push_back(namespace_of(tenant));
  respond_json(std::move(call.exchange), 200, names);
}

// faas-cli reads both versions, and fails where one is null.
void info(NodeService& node, RouteCall call) {
  const json version{{"sha", ""}, {"release", node.status().version}, {"commit_message", ""}};
  respond_json(std::move(call.exchange), 200,
               {{"provider", {{"provider", "fairlead"}, {"version", version}, {"orchestration", "fairlead"}}},
                {"version", version},
                {"arch", "x86_64"}});
}

void no_namespaces(NodeService&, RouteCall call) {
  call.exchange.respond({.status = 501,
                         .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
                         .body = "a namespace is a tenant, which 'fairlead tenant add NAME' makes\n"});
}

}  // namespace

void add_function_routes(Routes& routes, NodeService& node, RolloutsPtr rollouts) {
  const auto add = [&](Permission permission, std::string_view method, std::string_view pattern,
                       void (*handle)(NodeService&, RouteCall)) {
    routes.add(
        method, pattern, [&node, handle](RouteCall call) { handle(node, std::move(call)); }, permission);
  };
  const auto add_with_rollouts = [&](Permission permission, std::string_view method, std::string_view pattern,
                                     auto handle) {
    routes.add(
        method, pattern, [&node, rollouts, handle](RouteCall call) { handle(node, *rollouts, std::move(call)); },
        permission);
  };
  add_with_rollouts(Permission::kRead, "GET", "/system/functions", list);
  add_with_rollouts(Permission::kDeploy, "POST", "/system/functions", create);
  add_with_rollouts(Permission::kDeploy, "PUT", "/system/functions", update);
  add_with_rollouts(Permission::kDeploy, "DELETE", "/system/functions", remove);
  add_with_rollouts(Permission::kRead, "GET", "/system/function/{name}", get);
  add(Permission::kDeploy, "POST", "/system/scale-function/{name}", scale);
  add(Permission::kRead, "GET", "/system/namespaces", namespaces);
  add(Permission::kRead, "GET", "/system/info", info);
  for (const char* const method : {"GET", "POST", "PUT", "DELETE"}) {
    add(Permission::kRead, method, "/system/namespace/{name}", no_namespaces);
  }
  // Prometheus tells what it thinks of functions. The node counts for itself.
  routes.add(
      "POST", "/system/alert", [](RouteCall call) { call.exchange.respond({.status = 200}); }, Permission::kRead);
}

}  // namespace fairlead::openfaas
