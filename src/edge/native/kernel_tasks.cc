#include "edge/native/kernel_tasks.h"

#include <memory>
#include <utility>

#include "edge/deadline_header.h"
#include "edge/error_document.h"
#include "edge/native/tenant_header.h"
#include "edge/trace_header.h"
#include "model/function.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {

namespace {

// Base64 is 4 bytes for 3; numbers that a call has as text are read as text again.
constexpr std::size_t kMaxBodyBytes =
    kMaxRequestFileBytes / 3 * 4 + kMaxRequestTaskBytes + kMaxSyncPayloadBytes + (1 << 20);

// What is larger is read on another thread: a megabyte of JSON takes tens of milliseconds.
constexpr std::size_t kReadAtOnceBytes = 64 << 10;

Result<KernelTaskRequest> request_of(std::string_view body) {
  if (body.size() > kMaxBodyBytes) {
    return fail(Errc::kTooLarge, "the request has {} bytes; at most {} are possible: put large constants as objects",
                body.size(), kMaxBodyBytes);
  }
  if (!wire::is_binary(body)) return wire::kernel_task_request_from_json(body);
  auto request = wire::decode_kernel_task_request(body);
  if (!request) return fail(Errc::kInvalidArgument, "{}", request.error().message);
  return request;
}

// A request, and where its answer goes.
struct Pending {
  TaskRun run;
  net::HttpExchange exchange;
  OutcomeResponse answer;
};

void run_read(NodeService& node, Pending pending, Result<KernelTaskRequest> request) {
  if (!request) return respond_error(std::move(pending.exchange), request.error());
  pending.run.request = *std::move(request);
  // Shared by the reply and this function: std::function wants copies.
  const auto exchange = std::make_shared<net::HttpExchange>(std::move(pending.exchange));
  auto done = [exchange, answer = std::move(pending.answer)](Result<Outcome> outcome) {
    if (!outcome) return respond_error(std::move(*exchange), outcome.error());
    exchange->respond(answer(*std::move(outcome)));
  };
  auto cancel = node.run_task(std::move(pending.run), std::move(done));
  if (*exchange && cancel) exchange->on_disconnect(std::move(cancel));
}

void run(NodeService& node, const OutcomeResponse& answer, RouteCall call) {
  net::HttpRequest& http = call.exchange.request();
  TaskRun run{.tenant = tenant_named_by(call)};
  if (Status valid = validate_tenant(run.tenant); !valid) return respond_error(std::move(call.exchange), valid.error());
  const auto deadline = deadline_of(http);
  if (!deadline) return respond_error(std::move(call.exchange), deadline.error());
  run.deadline_ms = *deadline;
  run.sdk_invocation_id = http.header("amz-sdk-invocation-id");
  run.trace_id = trace_id_of(http);
  if (http.body().size() <= kReadAtOnceBytes) {
    auto request = request_of(http.body());
    return run_read(node, {std::move(run), std::move(call.exchange), answer}, std::move(request));
  }
  const std::string tenant = run.tenant;
  const auto body = std::make_shared<const std::string>(http.take_body());
  // Shared by the job and what follows it: std::function wants copies.
  const auto pending = std::make_shared<Pending>(Pending{std::move(run), std::move(call.exchange), answer});
  const Status accepted = node.run_elsewhere(tenant, Bytes(std::ssize(*body)), [&node, pending, body] {
    auto request = std::make_shared<Result<KernelTaskRequest>>(request_of(*body));
    return [&node, pending, request] { run_read(node, std::move(*pending), std::move(*request)); };
  });
  if (!accepted) respond_error(std::move(pending->exchange), accepted.error());
}

}  // namespace

void add_kernel_task_routes(Routes& routes, NodeService& node, OutcomeResponse answer) {
  routes.add(
      "POST", "/v1/ktasks", [&node, answer = std::move(answer)](RouteCall call) { run(node, answer, std::move(call)); },
      Permission::kInvoke);
}

}  // namespace fairlead
