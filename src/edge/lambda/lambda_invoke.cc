#include "edge/lambda/lambda_invoke.h"

#include <memory>
#include <utility>

#include "base/base64.h"
#include "edge/deadline_header.h"
#include "edge/error_document.h"
#include "edge/function_in_path.h"
#include "edge/lambda/event_stream.h"
#include "edge/lambda/lambda_outcome.h"
#include "edge/streamed_answer.h"
#include "edge/trace_header.h"

namespace fairlead {

namespace {

constexpr std::size_t kMaxClientContextBytes = 3583;  // encoded, as Lambda has it

enum class InvocationType { kRequestResponse, kEvent, kDryRun };

Result<InvocationType> invocation_type(std::string_view text) {
  if (text.empty() || text == "RequestResponse") return InvocationType::kRequestResponse;
  if (text == "Event") return InvocationType::kEvent;
  if (text == "DryRun") return InvocationType::kDryRun;
  return fail(Errc::kInvalidArgument, "X-Amz-Invocation-Type is '{}'; it must be RequestResponse, Event or DryRun",
              text);
}

Result<bool> wants_log_tail(std::string_view text) {
  if (text.empty() || text == "None") return false;
  if (text == "Tail") return true;
  return fail(Errc::kInvalidArgument, "X-Amz-Log-Type is '{}'; it must be None or Tail", text);
}

Result<std::string> client_context(std::string_view encoded) {
  if (encoded.empty()) return std::string();
  if (encoded.size() > kMaxClientContextBytes) {
    return fail(Errc::kInvalidArgument, "X-Amz-Client-Context has {} bytes; it may have at most {}", encoded.size(),
                kMaxClientContextBytes);
  }
  return base64_decode("X-Amz-Client-Context", encoded);
}

Status check_payload(InvocationType type, std::size_t bytes) {
  const bool is_event = type == InvocationType::kEvent;
  const std::size_t most = is_event ? kMaxAsyncPayloadBytes : kMaxSyncPayloadBytes;
  if (bytes <= most) return {};
  return fail(Errc::kTooLarge, "the payload has {} bytes; {} invocations may have at most {}", bytes,
              is_event ? "Event" : "RequestResponse", most);
}

Result<InvokeRequest> read_request(RouteCall& call, InvocationType type) {
  net::HttpRequest& http = call.exchange.request();
  auto named = qualified_from(call);
  if (!named) return fail(named.error());
  if (Status size = check_payload(type, http.body().size()); !size) return fail(size.error());
  auto log_tail = wants_log_tail(http.header("X-Amz-Log-Type"));
  if (!log_tail) return fail(log_tail.error());
  auto context = client_context(http.header("X-Amz-Client-Context"));
  if (!context) return fail(context.error());
  const auto deadline = deadline_of(http);
  if (!deadline) return fail(deadline.error());
  InvokeRequest request;
  request.invocation.deadline_ms = *deadline;
  request.invocation.function = std::move(named->name);
  request.qualifier = std::move(named->qualifier);
  request.invocation.client_context = std::move(*context);
  request.sdk_invocation_id = http.header("amz-sdk-invocation-id");
  request.invocation.trace_id = trace_id_of(http);
  request.want_log_tail = *log_tail;
  request.invocation.payload = http.take_body();
  return request;
}

// A full queue is told apart from a function that its author has closed with a reserved concurrency of 0.
ErrorDocument invoke_error(NodeService& node, const std::string& function, const Error& error) {
  ErrorDocument result = error_document(error);
  if (error.code != Errc::kResourceExhausted) return result;
  const auto record = node.get_function(function);
  if (record && record->reserved_concurrency == 0) {
    result.reason = "ReservedFunctionConcurrentInvocationLimitExceeded";
  }
  return result;
}

void invoke_and_wait(NodeService& node, net::HttpExchange exchange, InvokeRequest request) {
  // Shared by the reply and this function: std::function wants copies.
  auto answer = std::make_shared<net::HttpExchange>(std::move(exchange));
  std::string function = request.invocation.function;
  auto cancel =
      node.invoke(std::move(request), [&node, answer, function = std::move(function)](Result<Outcome> outcome) {
        if (outcome && outcome->was_streamed) outcome = fail(was_streamed_elsewhere());
        if (outcome) return answer->respond(lambda_response(std::move(*outcome)));
        respond_error(std::move(*answer), invoke_error(node, function, outcome.error()));
      });
  if (*answer && cancel) answer->on_disconnect(std::move(cancel));
}

// InvokeWithResponseStream: PayloadChunk, PayloadChunk, ..., InvokeComplete.
class EventStreamFraming final : public AnswerFraming {
 public:
  net::HttpResponse head(const AnswerHead& head) override {
    return {.status = 200,
            .headers = {{"Content-Type", "application/vnd.amazon.eventstream"},
                        {"x-amzn-RequestId", std::string(head.request_id)}}};
  }

  std::optional<net::HttpResponse> whole(Outcome&) override { return std::nullopt; }

  std::string part(std::string_view bytes) override {
    return event_stream_message("PayloadChunk", "application/octet-stream", bytes);
  }

  std::optional<std::string> last(const Outcome& outcome) override {
    return event_stream_message("InvokeComplete", "application/json", invoke_complete(outcome));
  }
};

void invoke_event(NodeService& node, net::HttpExchange exchange, InvokeRequest request) {
  auto answer = std::make_shared<net::HttpExchange>(std::move(exchange));
  std::string function = request.invocation.function;
  node.invoke_event(std::move(request),
                    [&node, answer, function = std::move(function)](Result<std::string> request_id) {
                      if (!request_id)
                        return respond_error(std::move(*answer), invoke_error(node, function, request_id.error()));
                      answer->respond({.status = 202, .headers = {{"x-amzn-RequestId", std::move(*request_id)}}});
                    });
}

void invoke(NodeService& node, RouteCall call) {
  const auto type = invocation_type(call.exchange.request().header("X-Amz-Invocation-Type"));
  if (!type) return respond_error(std::move(call.exchange), type.error());
  auto request = read_request(call, *type);
  if (!request) return respond_error(std::move(call.exchange), request.error());
  if (Status seen = check_seen(node, call.principal, request->invocation.function); !seen) {
    return respond_error(std::move(call.exchange), seen.error());
  }
  switch (*type) {
    case InvocationType::kRequestResponse: return invoke_and_wait(node, std::move(call.exchange), std::move(*request));
    case InvocationType::kEvent: return invoke_event(node, std::move(call.exchange), std::move(*request));
    case InvocationType::kDryRun: break;
  }
  if (Status possible = node.check_invoke(request->invocation.function); !possible) {
    return respond_error(std::move(call.exchange), possible.error());
  }
  const auto version = node.versions().find(request->invocation.function, request->qualifier);
  if (!version) return respond_error(std::move(call.exchange), version.error());
  call.exchange.respond({.status = 204});
}

void invoke_with_stream(NodeService& node, RouteCall call) {
  const auto type = invocation_type(call.exchange.request().header("X-Amz-Invocation-Type"));
  if (type && *type == InvocationType::kEvent) {
    return respond_error(std::move(call.exchange),
                         Error{Errc::kInvalidArgument,
                               "X-Amz-Invocation-Type is 'Event', which has no answer to stream; it "
                               "must be RequestResponse or DryRun"});
  }
  if (type && *type == InvocationType::kDryRun) return invoke(node, std::move(call));
  auto request = type ? read_request(call, *type) : Result<InvokeRequest>(fail(type.error()));
  if (!request) return respond_error(std::move(call.exchange), request.error());
  if (Status seen = check_seen(node, call.principal, request->invocation.function); !seen) {
    return respond_error(std::move(call.exchange), seen.error());
  }
  StreamedAnswer::invoke(node, std::move(call.exchange), std::make_unique<EventStreamFraming>(), std::move(*request));
}

}  // namespace

void add_invoke_routes(Routes& routes, NodeService& node) {
  routes.add(
      "POST", "/2015-03-31/functions/{function}/invocations",
      [&node](RouteCall call) { invoke(node, std::move(call)); }, Permission::kInvoke);
  routes.add(
      "POST", "/2021-11-15/functions/{function}/response-streaming-invocations",
      [&node](RouteCall call) { invoke_with_stream(node, std::move(call)); }, Permission::kInvoke);
}

}  // namespace fairlead
