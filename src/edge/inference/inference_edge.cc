#include "edge/inference/inference_edge.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "edge/deadline_header.h"
#include "edge/function_in_path.h"
#include "edge/inference/datatype.h"
#include "edge/inference/infer_answer.h"
#include "edge/inference/infer_request.h"
#include "edge/inference/inference_error.h"
#include "edge/json_body.h"
#include "edge/trace_header.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {

using nlohmann::json;

namespace inference {
namespace {

constexpr const char* kHeaderLength = "Inference-Header-Content-Length";
constexpr const char* kPlatform = "fairlead_kernel_task";

// What is larger is read or written on another thread: a megabyte of numbers as text takes tens of milliseconds.
constexpr std::size_t kAtOnceBytes = 64 << 10;

// ---- models

struct Model {
  std::string name;
  std::string tenant;
  CallSignature signature;
};

Result<Model> find_model(NodeService& node, const RouteCall& call) {
  const std::string& name = call.parameter("model");
  const auto is_version = [](const auto& parameter) { return parameter.first == "version"; };
  const auto version = std::find_if(call.parameters.begin(), call.parameters.end(), is_version);
  if (version != call.parameters.end() && version->second != kVersion) {
    return fail(Errc::kNotFound, "{} has no version '{}'; it has {}", name, version->second, kVersion);
  }
  const auto record = node.get_function(name);
  if (!record || !call.principal.sees(tenant_of(record->config.tags))) {
    return fail(Errc::kNotFound, "there is no model '{}'", name);
  }
  auto signature = node.call_signature(name);
  if (!signature) {
    return fail(Errc::kInvalidArgument,
                "{} is no model: it does not say which tensors it takes. Kernel tasks do; invoke it as a function",
                name);
  }
  return Model{name, tenant_of(record->config.tags), *std::move(signature)};
}

std::vector<Model> models_of(NodeService& node, const Principal& who) {
  std::vector<Model> models;
  for (const FunctionRecord& record : node.list_functions()) {
    if (!who.sees(tenant_of(record.config.tags))) continue;
    if (auto signature = node.call_signature(record.name)) {
      models.push_back({record.name, tenant_of(record.config.tags), *std::move(signature)});
    }
  }
  return models;
}

json metadata_of(const std::vector<TensorSpec>& tensors) {
  json list = json::array();
  for (const TensorSpec& tensor : tensors) {
    const TensorView view = view_of(tensor);
    list.push_back({{"name", tensor.name}, {"datatype", view.datatype}, {"shape", view.shape}});
  }
  return list;
}

json configuration_of(const std::vector<TensorSpec>& tensors) {
  json list = json::array();
  for (const TensorSpec& tensor : tensors) {
    list.push_back(
        {{"name", tensor.name}, {"data_type", configured_datatype_of(tensor.type)}, {"dims", view_of(tensor).shape}});
  }
  return list;
}

// Counts and sums since the node started. A function's time on its device is all of its run that is known apart.
json stats_of(const FunctionStatus& function) {
  const auto counted = [](std::uint64_t count, Duration sum) {
    return json{{"count", count}, {"ns", std::chrono::nanoseconds(sum).count()}};
  };
  const FunctionStats& stats = function.stats;
  const std::uint64_t failed = stats.errors + stats.timeouts + stats.crashes;
  const std::uint64_t succeeded = stats.invocations - std::min(stats.invocations, failed);
  const Duration none{0};
  return {{"name", function.name},
          {"version", kVersion},
          {"inference_count", succeeded},
          {"execution_count", succeeded},
          {"inference_stats",
           {{"success", counted(succeeded, stats.queue_time + stats.service)},
            {"fail", counted(failed, none)},
            {"queue", counted(stats.invocations, stats.queue_time)},
            {"compute_input", counted(0, none)},
            {"compute_infer", counted(succeeded, stats.service)},
            {"compute_output", counted(0, none)},
            {"cache_hit", counted(0, none)},
            {"cache_miss", counted(0, none)}}},
          {"batch_stats", json::array()}};
}

// ---- one inference

// On its way from the body to the answer.
struct Inference {
  NodeService& node;
  Model model;
  net::HttpExchange exchange;
  InferRequest request;
  std::optional<std::int64_t> deadline_ms;
  std::string trace_id;
};
using Pending = std::shared_ptr<Inference>;  // std::function wants copies

Error error_of(const Outcome& outcome) {
  const std::string& text = outcome.failure.text.empty() ? outcome.payload : outcome.failure.text;
  const std::string what =
      fmt::format("{}: {}", outcome.failure.type.empty() ? outcome_name(outcome.kind) : outcome.failure.type,
                  std::string_view(text).substr(0, 1000));
  switch (outcome.kind) {
    case OutcomeKind::kTimeout:
    case OutcomeKind::kExpired: return {Errc::kDeadlineExceeded, what};
    case OutcomeKind::kStartFailed: return {Errc::kUnavailable, what};
    default: return {Errc::kInternal, what};
  }
}

void respond(Pending inference, Result<InferAnswer> answer) {
  if (!answer) return refuse(std::move(inference->exchange), answer.error());
  const bool is_binary = answer->json_bytes != answer->body.size();
  net::HttpResponse response{.body = std::move(answer->body)};
  response.headers = {{"Content-Type", is_binary ? "application/octet-stream" : "application/json"}};
  if (is_binary) response.headers.push_back({kHeaderLength, fmt::format("{}", answer->json_bytes)});
  inference->exchange.respond(std::move(response));
}

// Reading an answer and writing it out may take as long as reading the request did.
void answer_with(const Pending& inference, Result<Outcome> outcome) {
  if (!outcome) return refuse(std::move(inference->exchange), outcome.error());
  if (outcome->failed()) return refuse(std::move(inference->exchange), error_of(*outcome));
  const std::size_t bytes = outcome->payload.size();
  auto write = [inference, payload = std::move(outcome->payload)]() -> Result<InferAnswer> {
    const auto answer = wire::decode_kernel_task_answer(payload);
    if (!answer) return fail(answer.error());
    return write_infer_answer(inference->model.name, inference->model.signature, inference->request, *answer);
  };
  const auto is_binary = [](const WantedOutput& output) { return output.is_binary; };
  const auto& outputs = inference->request.outputs;
  if (bytes <= kAtOnceBytes || std::all_of(outputs.begin(), outputs.end(), is_binary)) {
    return respond(inference, write());
  }
  const Status accepted = inference->node.run_elsewhere(
      inference->model.tenant, Bytes(static_cast<std::int64_t>(bytes)), [inference, write = std::move(write)] {
        return [inference, answer = std::make_shared<Result<InferAnswer>>(write())] {
          respond(inference, std::move(*answer));
        };
      });
  if (!accepted) refuse(std::move(inference->exchange), accepted.error());
}

void invoke(const Pending& inference, Result<InferRequest> request) {
  if (!request) return refuse(std::move(inference->exchange), request.error());
  inference->request = *std::move(request);
  InvokeRequest invocation;
  invocation.invocation.function = inference->model.name;
  invocation.invocation.payload = wire::encode(inference->request.call);
  if (invocation.invocation.payload.size() > kMaxSyncPayloadBytes) {
    return refuse(std::move(inference->exchange),
                  {Errc::kTooLarge, fmt::format("the tensors have {} bytes; a call may have at most {}",
                                                invocation.invocation.payload.size(), kMaxSyncPayloadBytes)});
  }
  for (CallBinding& input : inference->request.call.inputs) input.bytes = {};  // they are in the payload
  invocation.invocation.trace_id = std::move(inference->trace_id);
  invocation.invocation.deadline_ms = inference->deadline_ms;
  if (const auto timeout = inference->request.timeout_us) {
    const std::int64_t deadline = wall_clock_ms() + (*timeout + 999) / 1000;
    invocation.invocation.deadline_ms = std::min(deadline, inference->deadline_ms.value_or(deadline));
  }
  auto cancel = inference->node.invoke(
      std::move(invocation), [inference](Result<Outcome> outcome) { answer_with(inference, std::move(outcome)); });
  if (inference->exchange && cancel) inference->exchange.on_disconnect(std::move(cancel));
}

Result<std::optional<std::size_t>> json_bytes_of(const net::HttpRequest& http) {
  const std::string_view text = http.header(kHeaderLength);
  if (text.empty()) return std::nullopt;
  const auto bytes = number_in<std::size_t>(kHeaderLength, text, 0, kMaxRequestBytes);
  if (!bytes) return fail(bytes.error());
  return *bytes;
}

void infer(NodeService& node, RouteCall call) {
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
  std::string trace = trace_id_of(http);
  const auto body = std::make_shared<const std::string>(http.take_body());
  const Pending inference = std::make_shared<Inference>(
      Inference{node, *std::move(model), std::move(call.exchange), {}, *deadline, std::move(trace)});
  const auto read = [inference, body, bytes = *json_bytes] {
    return read_infer_request(inference->model.signature, *body, bytes);
  };
  // Bytes behind the JSON are copied; it is numbers as text that take long.
  if (json_bytes->value_or(body->size()) <= kAtOnceBytes) return invoke(inference, read());
  const Status accepted = node.run_elsewhere(inference->model.tenant, Bytes(std::ssize(*body)), [inference, read] {
    return [inference, request = std::make_shared<Result<InferRequest>>(read())] {
      invoke(inference, std::move(*request));
    };
  });
  if (!accepted) refuse(std::move(inference->exchange), accepted.error());
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
          {"platform", kPlatform},
          {"inputs", metadata_of(model.signature.inputs)},
          {"outputs", metadata_of(model.signature.outputs)}};
}

json model_ready(NodeService&, const Model& model) {
  return {{"name", model.name}, {"ready", true}};
}

json configuration(NodeService&, const Model& model) {
  return {{"name", model.name},
          {"platform", kPlatform},
          {"backend", "fairlead"},
          {"max_batch_size", 0},
          {"input", configuration_of(model.signature.inputs)},
          {"output", configuration_of(model.signature.outputs)}};
}

json statistics(NodeService& node, const Model& model) {
  json list = json::array();
  for (const FunctionStatus& function : node.status().functions) {
    if (function.name == model.name) list.push_back(stats_of(function));
  }
  return {{"model_stats", std::move(list)}};
}

void all_statistics(NodeService& node, RouteCall call) {
  const std::vector<Model> models = models_of(node, call.principal);
  json list = json::array();
  for (const FunctionStatus& function : node.status().functions) {
    const auto is_it = [&](const Model& model) { return model.name == function.name; };
    if (std::any_of(models.begin(), models.end(), is_it)) list.push_back(stats_of(function));
  }
  respond_json(std::move(call.exchange), 200, {{"model_stats", std::move(list)}});
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

Edge inference_edge(NodeService& node) {
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
        "POST", prefix + "/infer", [&node](RouteCall call) { infer(node, std::move(call)); }, Permission::kInvoke);
  }
  return edge;
}

}  // namespace fairlead
