#include "edge/native/function_stream.h"

#include <memory>
#include <utility>

#include "edge/deadline_header.h"
#include "edge/error_document.h"
#include "edge/function_in_path.h"
#include "edge/streamed_answer.h"
#include "edge/trace_header.h"

namespace fairlead {
namespace {

class PlainFraming final : public AnswerFraming {
 public:
  explicit PlainFraming(OutcomeResponse outcome_response) : outcome_response_(std::move(outcome_response)) {}

  net::HttpResponse head(const AnswerHead& head) override {
    const std::string_view type = head.content_type.empty() ? "application/octet-stream" : head.content_type;
    return {.status = 200,
            .headers = {{"Content-Type", std::string(type)},
                        {"x-amzn-RequestId", std::string(head.request_id)},
                        {"Cache-Control", "no-cache"}}};
  }
  bool reads_preludes() const override { return true; }
  std::string part(std::string_view bytes) override { return std::string(bytes); }
  std::optional<net::HttpResponse> whole(Outcome& outcome) override { return outcome_response_(std::move(outcome)); }
  std::optional<std::string> last(const Outcome& outcome) override {
    return outcome.failed() ? std::nullopt : std::optional<std::string>("");
  }

 private:
  const OutcomeResponse outcome_response_;
};

Result<InvokeRequest> read_request(NodeService& node, RouteCall& call) {
  net::HttpRequest& http = call.exchange.request();
  auto named = qualified_from(call);
  if (!named) return fail(named.error());
  if (http.body().size() > kMaxSyncPayloadBytes) {
    return fail(Errc::kTooLarge, "the payload has {} bytes; a call may have at most {}", http.body().size(),
                kMaxSyncPayloadBytes);
  }
  const auto deadline = deadline_of(http);
  if (!deadline) return fail(deadline.error());
  if (Status seen = check_seen(node, call.principal, named->name); !seen) return fail(seen.error());
  InvokeRequest request;
  request.invocation.function = std::move(named->name);
  request.qualifier = std::move(named->qualifier);
  request.invocation.deadline_ms = *deadline;
  request.invocation.trace_id = trace_id_of(http);
  request.sdk_invocation_id = http.header("amz-sdk-invocation-id");
  request.invocation.payload = http.take_body();
  return request;
}

}  // namespace

void add_function_stream_routes(Routes& routes, NodeService& node, OutcomeResponse outcome_response) {
  routes.add(
      "POST", "/fairlead/v1/functions/{function}/stream",
      [&node, outcome_response = std::move(outcome_response)](RouteCall call) {
        auto request = read_request(node, call);
        if (!request) return respond_error(std::move(call.exchange), request.error());
        StreamedAnswer::invoke(node, std::move(call.exchange), std::make_unique<PlainFraming>(outcome_response),
                               std::move(*request));
      },
      Permission::kInvoke);
}

}  // namespace fairlead
