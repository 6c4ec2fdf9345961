#include "edge/inference/grpc/grpc_edge.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "edge/deadline_header.h"
#include "edge/error_document.h"
#include "edge/inference/datatype.h"
#include "edge/inference/grpc/health.pb.h"
#include "edge/inference/grpc/infer_message.h"
#include "edge/inference/grpc/open_inference.pb.h"
#include "edge/inference/inference_call.h"
#include "edge/inference/model.h"
#include "edge/trace_header.h"
#include "net/grpc/grpc_status.h"

namespace fairlead {
namespace inference {
namespace {

constexpr const char* kService = "/inference.GRPCInferenceService";
constexpr const char* kHealthService = "/grpc.health.v1.Health";

// What is larger is read or written on another thread.
constexpr std::size_t kAtOnceBytes = 64 << 10;
constexpr std::size_t kMostBesideTensors = 16 << 10;  // of a message that has none

using Message = google::protobuf::MessageLite;

void respond_text(net::HttpExchange exchange, unsigned status, std::string text) {
  exchange.respond({.status = status, .body = std::move(text)});
}

void refuse_call(net::HttpExchange exchange, const Error& error) {
  respond_text(std::move(exchange), error_document(error).status, error.message);
}

void unknown_method(net::HttpExchange exchange, const std::string&) {
  std::string text = fmt::format("{}: there is no such method", exchange.request().target().substr(0, 256));
  exchange.respond({.status = 404,
                    .headers = {{"grpc-status", fmt::format("{}", static_cast<int>(net::GrpcStatus::kUnimplemented))}},
                    .body = std::move(text)});
}

void respond(net::HttpExchange exchange, const Message& message) {
  exchange.respond({.body = message.SerializeAsString()});
}

// The call's message; nothing: it is none of this kind, which its sender was told.
template <typename T>
std::optional<T> message_of(net::HttpExchange& exchange) {
  T message;
  const std::string_view body = exchange.request().body();
  if (body.size() > kMostBesideTensors) {
    refuse_call(std::move(exchange),
                {Errc::kTooLarge, fmt::format("the message has {} bytes; of this method it may have {}", body.size(),
                                              kMostBesideTensors)});
    return std::nullopt;
  }
  if (message.ParseFromArray(body.data(), static_cast<int>(body.size()))) return message;
  refuse_call(std::move(exchange), {Errc::kInvalidArgument, "the message is not the one that this method takes"});
  return std::nullopt;
}

// ---- the server

void server_live(RouteCall call) {
  open_inference::ServerLiveResponse answer;
  answer.set_live(true);
  respond(std::move(call.exchange), answer);
}

void server_ready(NodeService& node, RouteCall call) {
  open_inference::ServerReadyResponse answer;
  answer.set_ready(!node.drains());
  respond(std::move(call.exchange), answer);
}

void server_metadata(NodeService& node, RouteCall call) {
  open_inference::ServerMetadataResponse answer;
  answer.set_name("fairlead");
  answer.set_version(node.status().version);
  for (const char* extension : {"model_configuration", "model_repository", "statistics"}) {
    answer.add_extensions(extension);
  }
  respond(std::move(call.exchange), answer);
}

void check_health(NodeService& node, RouteCall call) {
  using grpc_health::HealthCheckResponse;
  const auto request = message_of<grpc_health::HealthCheckRequest>(call.exchange);
  if (!request) return;
  if (!request->service().empty() && request->service() != std::string_view(kService).substr(1)) {
    return refuse_call(std::move(call.exchange), {Errc::kNotFound, "there is no such service"});
  }
  HealthCheckResponse answer;
  answer.set_status(node.drains() ? HealthCheckResponse::NOT_SERVING : HealthCheckResponse::SERVING);
  respond(std::move(call.exchange), answer);
}

// ---- models

void answer_about(const Model&, open_inference::ModelReadyResponse& answer) {
  answer.set_ready(true);
}

void answer_about(const Model& model, open_inference::ModelMetadataResponse& answer) {
  answer.set_name(model.name);
  answer.add_versions(kVersion);
  answer.set_platform(platform_of(model));
  const auto tell = [](const TensorSpec& tensor, open_inference::ModelMetadataResponse::TensorMetadata& told) {
    const TensorView view = view_of(tensor);
    told.set_name(tensor.name);
    told.set_datatype(std::string(view.datatype));
    for (const std::int64_t size : told_shape(view)) told.add_shape(size);
  };
  for (const TensorSpec& tensor : model.signature.inputs) tell(tensor, *answer.add_inputs());
  for (const TensorSpec& tensor : model.signature.outputs) tell(tensor, *answer.add_outputs());
}

void answer_about(const Model& model, open_inference::ModelConfigResponse& answer) {
  open_inference::ModelConfig& config = *answer.mutable_config();
  config.set_name(model.name);
  config.set_platform(platform_of(model));
  config.set_backend(kBackend);
  const auto tell = [](const TensorSpec& tensor, auto& told) {
    open_inference::DataType type = open_inference::TYPE_INVALID;
    open_inference::DataType_Parse(std::string(configured_datatype_of(tensor.type)), &type);
    told.set_name(tensor.name);
    told.set_data_type(type);
    for (const std::int64_t size : told_shape(view_of(tensor))) told.add_dims(size);
  };
  for (const TensorSpec& tensor : model.signature.inputs) tell(tensor, *config.add_input());
  for (const TensorSpec& tensor : model.signature.outputs) tell(tensor, *config.add_output());
}

template <typename Answer>
void show(NodeService& node, RouteCall call) {
  const auto request = message_of<open_inference::ModelRequest>(call.exchange);
  if (!request) return;
  const auto model = find_model(node, call.principal, request->name(), request->version());
  if (!model) return refuse_call(std::move(call.exchange), model.error());
  Answer answer;
  answer_about(*model, answer);
  respond(std::move(call.exchange), answer);
}

void tell(const Statistics& stats, open_inference::ModelStatistics& told) {
  const auto set = [](const Statistics::Counted& counted, open_inference::StatisticDuration& duration) {
    duration.set_count(counted.count);
    duration.set_ns(counted.ns);
  };
  told.set_name(stats.name);
  told.set_version(kVersion);
  told.set_inference_count(stats.success.count);
  told.set_execution_count(stats.success.count);
  open_inference::InferStatistics& times = *told.mutable_inference_stats();
  set(stats.success, *times.mutable_success());
  set(stats.fail, *times.mutable_fail());
  set(stats.queue, *times.mutable_queue());
  set({}, *times.mutable_compute_input());
  set(stats.compute, *times.mutable_compute_infer());
  set({}, *times.mutable_compute_output());
}

// Of one model, or of all where none is named.
void statistics(NodeService& node, RouteCall call) {
  const auto request = message_of<open_inference::ModelRequest>(call.exchange);
  if (!request) return;
  std::vector<Model> models;
  if (request->name().empty()) {
    models = models_of(node, call.principal);
  } else {
    auto model = find_model(node, call.principal, request->name(), request->version());
    if (!model) return refuse_call(std::move(call.exchange), model.error());
    models.push_back(*std::move(model));
  }
  open_inference::ModelStatisticsResponse answer;
  for (const Statistics& stats : statistics_of(node, models)) tell(stats, *answer.add_model_stats());
  respond(std::move(call.exchange), answer);
}

void index(NodeService& node, RouteCall call) {
  if (!message_of<open_inference::RepositoryIndexRequest>(call.exchange)) return;
  open_inference::RepositoryIndexResponse answer;
  for (const Model& model : models_of(node, call.principal)) {
    auto& told = *answer.add_models();
    told.set_name(model.name);
    told.set_version(kVersion);
    told.set_state("READY");
  }
  respond(std::move(call.exchange), answer);
}

// ---- one inference

// Milliseconds since 1970: the sooner of what the two headers say; none: neither does.
Result<std::optional<std::int64_t>> deadline_of_call(const net::HttpRequest& request) {
  auto deadline = deadline_of(request);
  const std::string_view text = request.header("grpc-timeout");
  if (!deadline || text.empty()) return deadline;
  const auto timeout = net::parse_grpc_timeout(text);
  if (!timeout) {
    return fail(Errc::kInvalidArgument, "grpc-timeout is '{}': it must be up to eight digits and H, M, S, m, u or n",
                text.substr(0, 32));
  }
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(*timeout).count();
  const std::int64_t at = wall_clock_ms() + std::clamp<std::int64_t>(ms, 1, kMaxDeadlineMs);
  return std::min(at, deadline->value_or(at));
}

Result<net::HttpResponse> write_response(const Model& model, const InferRequest& request,
                                         const KernelTaskAnswer& answer) {
  auto message = write_infer_message(model.name, model.signature, request, answer);
  if (!message) return fail(message.error());
  return net::HttpResponse{.body = *std::move(message)};
}

void infer(NodeService& node, Batches& batches, RouteCall call) {
  net::HttpRequest& request = call.exchange.request();
  const auto meant = meant_model(request.body());
  if (!meant) return refuse_call(std::move(call.exchange), meant.error());
  auto model = find_model(node, call.principal, meant->name, meant->version);
  if (!model) return refuse_call(std::move(call.exchange), model.error());
  const auto deadline = deadline_of_call(request);
  if (!deadline) return refuse_call(std::move(call.exchange), deadline.error());
  InferenceCall inference{.model = *std::move(model),
                          .exchange = {},
                          .deadline_ms = *deadline,
                          .trace_id = trace_id_of(request),
                          .long_bytes = request.body().size() > kAtOnceBytes ? request.body().size() : 0};
  const auto message = std::make_shared<const std::string>(request.take_body());
  inference.exchange = std::move(call.exchange);
  run_inference(node, batches, std::move(inference),
                {.read = [message](const CallSignature& signature) { return read_infer_message(signature, *message); },
                 .write = write_response,
                 .writes_long = [](const InferRequest&, std::size_t bytes) { return bytes > kAtOnceBytes; },
                 .refuse = refuse_call});
}

}  // namespace
}  // namespace inference

Edge grpc_edge(NodeService& node, inference::Batches& batches) {
  using namespace inference;
  Edge edge{.name = "grpc",
            .prefixes = {kService, kHealthService},
            .routes = {},
            .errors = {.error = refuse_call, .unknown = unknown_method}};
  using Handler = void (*)(NodeService& node, RouteCall call);
  const auto add = [&](const char* service, const char* method, Handler handler, Permission permission) {
    edge.routes.add(
        "POST", fmt::format("{}/{}", service, method),
        [&node, handler](RouteCall call) { handler(node, std::move(call)); }, permission);
  };
  add(kHealthService, "Check", check_health, Permission::kAnyone);
  add(
      kService, "ServerLive", [](NodeService&, RouteCall call) { server_live(std::move(call)); }, Permission::kAnyone);
  add(kService, "ServerReady", server_ready, Permission::kAnyone);
  add(kService, "ServerMetadata", server_metadata, Permission::kRead);
  add(kService, "ModelReady", show<open_inference::ModelReadyResponse>, Permission::kRead);
  add(kService, "ModelMetadata", show<open_inference::ModelMetadataResponse>, Permission::kRead);
  add(kService, "ModelConfig", show<open_inference::ModelConfigResponse>, Permission::kRead);
  add(kService, "ModelStatistics", statistics, Permission::kRead);
  add(kService, "RepositoryIndex", index, Permission::kRead);
  edge.routes.add(
      "POST", fmt::format("{}/ModelInfer", kService),
      [&node, &batches](RouteCall call) { infer(node, batches, std::move(call)); }, Permission::kInvoke);
  return edge;
}

}  // namespace fairlead
