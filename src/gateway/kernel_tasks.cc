#include "gateway/kernel_tasks.h"

#include <memory>
#include <utility>

#include "gateway/lambda_error.h"
#include "gateway/lambda_outcome.h"
#include "gateway/tenant_header.h"
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

void run_read(NodeService& node, TaskRun run, Result<KernelTaskRequest> request, net::HttpExchange exchange) {
  if (!request) return respond_error(std::move(exchange), request.error());
  run.request = *std::move(request);
  // Shared by the reply and this function: std::function wants copies.
  const auto answer = std::make_shared<net::HttpExchange>(std::move(exchange));
  auto cancel = node.run_task(std::move(run), [answer](Result<Outcome> outcome) {
    if (!outcome) return respond_error(std::move(*answer), outcome.error());
    answer->respond(lambda_response(*std::move(outcome)));
  });
  if (*answer && cancel) answer->on_disconnect(std::move(cancel));
}

void run(NodeService& node, RouteCall call) {
  net::HttpRequest& http = call.exchange.request();
  TaskRun run{.tenant = tenant_named_by(call)};
  if (Status valid = validate_tenant(run.tenant); !valid) return respond_error(std::move(call.exchange), valid.error());
  run.sdk_invocation_id = http.header("amz-sdk-invocation-id");
  run.trace_id = http.header("X-Amzn-Trace-Id");
  if (http.body().size() <= kReadAtOnceBytes) {
    auto request = request_of(http.body());
    return run_read(node, std::move(run), std::move(request), std::move(call.exchange));
  }
  // Shared by the job and what follows it: std::function wants copies.
  const auto exchange = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  const auto shared = std::make_shared<TaskRun>(std::move(run));
  const auto body = std::make_shared<const std::string>(exchange->request().take_body());
  const Status accepted = node.run_elsewhere(shared->tenant, Bytes(std::ssize(*body)), [&node, shared, exchange, body] {
    auto request = std::make_shared<Result<KernelTaskRequest>>(request_of(*body));
    return [&node, shared, exchange, request] {
      run_read(node, std::move(*shared), std::move(*request), std::move(*exchange));
    };
  });
  if (!accepted) respond_error(std::move(*exchange), accepted.error());
}

}  // namespace

void add_kernel_task_routes(Routes& routes, NodeService& node) {
  routes.add("POST", "/v1/ktasks", [&node](RouteCall call) { run(node, std::move(call)); });
}

}  // namespace fairlead
