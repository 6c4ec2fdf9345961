#include "edge/inference/inference_edge.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "edge/deadline_header.h"
#include "edge/inference/datatype.h"
#include "edge/inference/infer_answer.h"
#include "edge/inference/infer_request.h"
#include "edge/inference/inference_call.h"
#include "edge/inference/inference_error.h"
#include "edge/inference/model.h"
#include "edge/json_body.h"
#include "edge/trace_header.h"

namespace fairlead {

using nlohmann::json;

namespace inference {
namespace {

constexpr const char* kHeaderLength = "Inference-Header-Content-Length";
// What is larger is read or written on another thread: a megabyte of numbers as text takes tens of milliseconds.
constexpr std::size_t kAtOnceBytes = 64 << 10;

// ---- models

Result<Model> find_model(NodeService& node, const RouteCall& call) {
  const auto is_version = [](const auto& parameter) { return parameter.first == "version"; };
  const auto version = std::find_if(call.parameters.begin(), call.parameters.end(), is_version);
  return inference::find_model(node, call.principal, call.parameter("model"),
                               version == call.parameters.end() ? std::string_view() : version->second);
}

json metadata_of(const std::vector<TensorSpec>& tensors) {
  json list = json::array();
  for (const TensorSpec& tensor : tensors) {
    const TensorView view = view_of(tensor);
    list.push_back({{"name", tensor.name}, {"datatype", view.datatype}, {"shape", told_shape(view)}});
  }
  return list;
}

json configuration_of(const std::vector<TensorSpec>& tensors) {
  json list = json::array();
  for (const TensorSpec& tensor : tensors) {
    list.push_back({{"name", tensor.name},
                    {"data_type", configured_datatype_of(tensor.type)},
                    {"dims", told_shape(view_of(tensor))}});
  }
  return list;
}

json stats_of(const Statistics& stats) {
  const auto counted = [](const Statistics::Counted& one) { return json{{"count", one.count}, {"ns", one.ns}}; };
  return {{"name", stats.name},
          {"version", kVersion},
          {"inference_count", stats.success.count},
          {"execution_count", stats.success.count},
          {"inference_stats",
           {{"success", counted(stats.success)},
            {"fail", counted(stats.fail)},
            {"queue", counted(stats.queue)},
            {"compute_input", counted({})},
            {"compute_infer", counted(stats.compute)},
            {"compute_output", counted({})},
            {"cache_hit", counted({})},
            {"cache_miss", counted({})}}},
          {"batch_stats", json::array()}};
}

json stats_of(NodeService& node, const std::vector<Model>& models) {
  json list = json::array();
  for (const Statistics& stats : statistics_of(node, models)) list.push_back(stats_of(stats));
  return {{"model_stats", std::move(list)}};
}

// ---- one inference

Result<net::HttpResponse> write_response(const Model& model, const InferRequest& request,
                                         const KernelTaskAnswer& answer) {
  auto written = write_infer_answer(model.name, model.signature, request, answer);
  if (!written) return fail(written.error());
  const bool is_binary = written->json_bytes != written->body.size();
  net::HttpResponse response{.body = std::move(written->body)};
  response.headers = {{"Content-Type", is_binary ? "application/octet-stream" : "application/json"}};
  if (is_binary) response.headers.push_back({kHeaderLength, fmt::format("{}", written->json_bytes)});
  return response;
}

// It is numbers as text that take long.
bool writes_long(const InferRequest& request, std::size_t bytes) {
  const auto is_binary = [](const WantedOutput& output) { return output.is_binary; };
  return bytes > kAtOnceBytes && !std::ranges::all_of(request.outputs, is_binary);
}

Result<std::optional<std::size_t>> json_bytes_of(const net::HttpRequest& http) {
  const std::string_view text = http.header(kHeaderLength);
  if (text.empty()) return std::nullopt;
  const auto bytes = number_in<std::size_t>(kHeaderLength, text, 0, kMaxRequestBytes);
  if (!bytes) return fail(bytes.error());
  return *bytes;
}

void infer(NodeService& node, Batches& batches, RouteCall call) {
  net::HttpRequest& http = call.exchange.request();
  if (const std::string_view coding = http.header("Content-Encoding"); !coding.empty() && coding != "identity") {
    return respond_json(
        std::move(call.exchange), 415,
        {{"error", fmt::format("Content-Encoding is '{}'; bodies are taken as they are", coding.substr(0, 64))}});
  }
  auto model = find_model(node, call);
  if (!model) return refuse(std::move(call.exchange), model.error());
  const auto json_bytes = json_bytes_of(http);
  if (!json_bytes) return refuse(std::move(call.exchange), json_bytes.error());
  const auto deadline = deadline_of(http);
  if (!deadline) return refuse(std::move(call.exchange), deadline.error());
  const std::size_t text_bytes = json_bytes->value_or(http.body().size());  // bytes behind it are copied
  InferenceCall inference{.model = *std::move(model),
                          .exchange = {},
                          .deadline_ms = *deadline,
                          .trace_id = trace_id_of(http),
                          .long_bytes = text_bytes > kAtOnceBytes ? http.body().size() : 0};
  const auto body = std::make_shared<const std::string>(http.take_body());
  inference.exchange = std::move(call.exchange);
  run_inference(node, batches, std::move(inference),
                {.read = [body, bytes = *json_bytes](
                             const CallSignature& signature) { return read_infer_request(signature, *body, bytes); },
                 .write = write_response,
                 .writes_long = writes_long,
                 .refuse = refuse});
}

// ---- what is there

void server_metadata(NodeService& node, RouteCall call) {
  respond_json(std::move(call.exchange), 200,
               {{"name", "fairlead"},
                {"version", node.status().version},
                {"extensions", {"binary_tensor_data", "model_configuration", "model_repository", "statistics"}}});
}

void ready(NodeService& node, RouteCall call) {
  const bool is_ready = !node.drains();
  respond_json(std::move(call.exchange), is_ready ? 200 : 503, {{"ready", is_ready}});
}

using ModelAnswer = json (*)(NodeService& node, const Model& model);

void show(NodeService& node, RouteCall call, ModelAnswer answer) {
  const auto model = find_model(node, call);
  if (!model) return refuse(std::move(call.exchange), model.error());
  respond_json(std::move(call.exchange), 200, answer(node, *model));
}

json metadata(NodeService&, const Model& model) {
  return {{"name", model.name},
          {"versions", {kVersion}},
          {"platform", platform_of(model)},
          {"inputs", metadata_of(model.signature.inputs)},
          {"outputs", metadata_of(model.signature.outputs)}};
}

json model_ready(NodeService&, const Model& model) {
  return {{"name", model.name}, {"ready", true}};
}

json configuration(NodeService&, const Model& model) {
  return {{"name", model.name},
          {"platform", platform_of(model)},
          {"backend", kBackend},
          {"max_batch_size", 0},
          {"input", configuration_of(model.signature.inputs)},
          {"output", configuration_of(model.signature.outputs)}};
}

json statistics(NodeService& node, const Model& model) {
  return stats_of(node, {model});
}

void all_statistics(NodeService& node, RouteCall call) {
  respond_json(std::move(call.exchange), 200, stats_of(node, models_of(node, call.principal)));
}

void index(NodeService& node, RouteCall call) {
  json list = json::array();
  for (const Model& model : models_of(node, call.principal)) {
    list.push_back({{"name", model.name}, {"version", kVersion}, {"state", "READY"}, {"reason", ""}});
  }
  respond_json(std::move(call.exchange), 200, list);
}

}  // namespace
}  // namespace inference

Edge inference_edge(NodeService& node, inference::Batches& batches) {
  using namespace inference;
  Edge edge{.name = "inference", .prefixes = {"/v2"}, .errors = errors()};
  Routes& routes = edge.routes;
  routes.add(
      "GET", "/v2/health/live",
      [](RouteCall call) {
        respond_json(std::move(call.exchange), 200, {{"live", true}});
      },
      Permission::kAnyone);
  routes.add(
      "GET", "/v2/health/ready", [&node](RouteCall call) { ready(node, std::move(call)); }, Permission::kAnyone);
  routes.add(
      "GET", "/v2", [&node](RouteCall call) { server_metadata(node, std::move(call)); }, Permission::kRead);
  routes.add(
      "GET", "/v2/models/stats", [&node](RouteCall call) { all_statistics(node, std::move(call)); }, Permission::kRead);
  routes.add(
      "POST", "/v2/repository/index", [&node](RouteCall call) { index(node, std::move(call)); }, Permission::kRead);
  for (const std::string prefix : {"/v2/models/{model}", "/v2/models/{model}/versions/{version}"}) {
    const auto add = [&](const char* path, ModelAnswer answer) {
      routes.add(
          "GET", prefix + path, [&node, answer](RouteCall call) { show(node, std::move(call), answer); },
          Permission::kRead);
    };
    add("", metadata);
    add("/ready", model_ready);
    add("/config", configuration);
    add("/stats", statistics);
    routes.add(
        "POST", prefix + "/infer", [&node, &batches](RouteCall call) { infer(node, batches, std::move(call)); },
        Permission::kInvoke);
  }
  return edge;
}

}  // namespace fairlead
