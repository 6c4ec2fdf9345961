#include "edge/native/graphs.h"

#include <memory>
#include <utility>

#include "base/base64.h"
#include "base/json_bounds.h"
#include "edge/error_document.h"
#include "edge/function_in_path.h"
#include "edge/json_body.h"
#include "edge/native/tenant_header.h"
#include "edge/query.h"
#include "wire/graph_json.h"

namespace fairlead {

using nlohmann::json;

namespace {

constexpr double kMaxWaitSeconds = 900;

Result<std::string> tenant_from(RouteCall& call) {
  std::string tenant = tenant_named_by(call);
  if (Status valid = validate_tenant(tenant); !valid) return fail(valid.error());
  return tenant;
}

// The function's answer as it can stand in JSON.
void add_result(const GraphNodeStatus& node, json& fields) {
  if (node.result_bytes) fields["result_bytes"] = *node.result_bytes;
  if (!node.result) return;
  json value(json::value_t::discarded);
  if (check_json_bounds(*node.result, "the result")) {
    value = json::parse(*node.result, nullptr, /*allow_exceptions=*/false);
  }
  if (value.is_discarded()) {
    fields["result_base64"] = base64_encode(*node.result);
  } else {
    fields["result"] = std::move(value);
  }
}

json node_json(const GraphNodeStatus& node) {
  json fields{{"function", node.function}, {"state", graph_node_state_name(node.state)}, {"attempts", node.attempts}};
  if (node.started_ms) fields["started_ms"] = *node.started_ms;
  if (node.ended_ms) fields["ended_ms"] = *node.ended_ms;
  if (!node.error.empty()) fields["error"] = node.error;
  add_result(node, fields);
  return fields;
}

json run_json(const GraphRunStatus& run) {
  json fields{{"run", run.run},
              {"tenant", run.tenant},
              {"state", graph_run_state_name(run.state)},
              {"created_ms", run.created_ms},
              {"counts",
               {{"waiting", run.waiting},
                {"running", run.running},
                {"done", run.done},
                {"failed", run.failed},
                {"skipped", run.skipped}}}};
  if (!run.name.empty()) fields["name"] = run.name;
  if (run.ended_ms) fields["ended_ms"] = *run.ended_ms;
  if (!run.error.empty()) fields["error"] = run.error;
  if (run.nodes.empty()) return fields;
  json& nodes = fields["nodes"] = json::object();
  for (const GraphNodeStatus& node : run.nodes) nodes[node.name] = node_json(node);
  return fields;
}

// Shared by the reply and the caller: std::function wants copies.
GraphService::Callback<GraphRunStatus> answer_with_run(net::HttpExchange exchange, bool is_new) {
  auto answer = std::make_shared<net::HttpExchange>(std::move(exchange));
  return [answer, is_new](const Result<GraphRunStatus>& run) {
    if (!run) return respond_error(std::move(*answer), run.error());
    const bool goes_on = run->state == GraphRunState::kRunning;
    respond_json(std::move(*answer), is_new && goes_on ? 202 : 200, run_json(*run));
  };
}

Result<Graph> graph_from(RouteCall& call) {
  const std::string_view body = call.exchange.request().body();
  if (body.size() <= kMaxGraphBytes) return wire::graph_from_json(body);
  return fail(Errc::kTooLarge, "the graph has {} bytes; at most {} are possible, large values belong in objects",
              body.size(), kMaxGraphBytes);
}

void check(GraphService& graphs, RouteCall call, const std::string& tenant, Graph graph) {
  const auto checked = graphs.check(tenant, std::move(graph));
  if (!checked) return respond_error(std::move(call.exchange), checked.error());
  respond_json(std::move(call.exchange), 200, {{"nodes", checked->nodes}, {"inputs", checked->inputs}});
}

Status check_all_seen(NodeService& node, const Principal& who, const Graph& graph) {
  if (!who.tenant) return {};
  for (const GraphNode& part : graph.nodes) {
    if (Status seen = check_seen(node, who, part.function); !seen) {
      return fail(seen.error().code, "nodes.{}.function: {}", part.name, seen.error().message);
    }
  }
  return {};
}

void submit(NodeService& node, RouteCall call) {
  GraphService& graphs = node.graphs();
  const auto tenant = tenant_from(call);
  if (!tenant) return respond_error(std::move(call.exchange), tenant.error());
  const auto wait = query_number<double>(call.target, "wait", 0, 0, kMaxWaitSeconds);
  if (!wait) return respond_error(std::move(call.exchange), wait.error());
  auto graph = graph_from(call);
  if (!graph) return respond_error(std::move(call.exchange), graph.error());
  if (Status seen = check_all_seen(node, call.principal, *graph); !seen) {
    return respond_error(std::move(call.exchange), seen.error());
  }
  if (has_query(call.target, "check")) return check(graphs, std::move(call), *tenant, *std::move(graph));
  const auto run = graphs.submit(*tenant, *std::move(graph));
  if (!run) return respond_error(std::move(call.exchange), run.error());
  graphs.wait(*tenant, *run, std::nullopt, from_seconds(*wait), answer_with_run(std::move(call.exchange), true));
}

void show(GraphService& graphs, RouteCall call) {
  const auto tenant = tenant_from(call);
  if (!tenant) return respond_error(std::move(call.exchange), tenant.error());
  const auto wait = query_number<double>(call.target, "wait", 0, 0, kMaxWaitSeconds);
  if (!wait) return respond_error(std::move(call.exchange), wait.error());
  const auto ended = query_number<std::size_t>(call.target, "ended", 0, 0, kMaxGraphNodes);
  if (!ended) return respond_error(std::move(call.exchange), ended.error());
  const auto seen = has_query(call.target, "ended") ? std::optional(*ended) : std::nullopt;
  const std::string run = call.parameter("run");
  graphs.wait(*tenant, run, seen, from_seconds(*wait), answer_with_run(std::move(call.exchange), false));
}

void list(GraphService& graphs, RouteCall call) {
  const auto tenant = tenant_from(call);
  if (!tenant) return respond_error(std::move(call.exchange), tenant.error());
  json runs = json::array();
  for (const GraphRunStatus& run : graphs.list(*tenant)) runs.push_back(run_json(run));
  respond_json(std::move(call.exchange), 200, {{"runs", std::move(runs)}});
}

void cancel(GraphService& graphs, RouteCall call) {
  const auto tenant = tenant_from(call);
  if (!tenant) return respond_error(std::move(call.exchange), tenant.error());
  const auto run = graphs.cancel(*tenant, call.parameter("run"));
  if (!run) return respond_error(std::move(call.exchange), run.error());
  respond_json(std::move(call.exchange), 200, run_json(*run));
}

}  // namespace

void add_graph_routes(Routes& routes, NodeService& node) {
  using Handle = void (*)(GraphService&, RouteCall);
  GraphService& graphs = node.graphs();
  const auto add = [&](Permission permission, std::string_view method, std::string_view pattern, Handle handle) {
    routes.add(
        method, pattern, [&graphs, handle](RouteCall call) { handle(graphs, std::move(call)); }, permission);
  };
  routes.add(
      "POST", "/v1/graphs", [&node](RouteCall call) { submit(node, std::move(call)); }, Permission::kInvoke);
  add(Permission::kRead, "GET", "/v1/graphs", list);
  add(Permission::kRead, "GET", "/v1/graphs/{run}", show);
  add(Permission::kInvoke, "DELETE", "/v1/graphs/{run}", cancel);
}

}  // namespace fairlead
