#include "runtime/runtime_api.h"

#include "base/check.h"

namespace fairlead {
namespace {

constexpr std::string_view kOk = R"({"status":"OK"})";
constexpr std::string_view kInvalidState =
    R"({"errorMessage":"The call is not allowed in this state","errorType":"InvalidStateTransition"})";
constexpr std::string_view kInvalidRequestId =
    R"({"errorMessage":"Invalid request ID","errorType":"InvalidRequestID"})";
constexpr std::string_view kTooLargeBody =
    R"({"errorMessage":"Response payload size exceeded the maximum allowed payload size",)"
    R"("errorType":"RequestEntityTooLarge"})";
constexpr std::string_view kUnknownBody =
    R"({"errorMessage":"Not a call of the runtime API 2018-06-01 that is served here","errorType":"NotFound"})";

RuntimeDecision refuse(unsigned status, std::string_view body) {
  return {.action = RuntimeAction::kReply, .status = status, .body = body};
}

bool remove_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

RuntimeCall parse_runtime_call(std::string_view method, std::string_view target) {
  if (!remove_prefix(target, "/2018-06-01/")) return {};
  const bool post = method == "POST";
  if (remove_prefix(target, "runtime/invocation/")) {
    if (target == "next") return {method == "GET" ? RuntimeRoute::kNext : RuntimeRoute::kUnknown, {}};
    const std::size_t slash = target.find('/');
    if (!post || slash == std::string_view::npos) return {};
    const std::string_view verb = target.substr(slash + 1);
    if (verb == "response") return {RuntimeRoute::kResponse, target.substr(0, slash)};
    if (verb == "error") return {RuntimeRoute::kError, target.substr(0, slash)};
    return {};
  }
  if (post && target == "runtime/init/error") return {RuntimeRoute::kInitError, {}};
  if (method == "GET" && target == "ping") return {RuntimeRoute::kPing, {}};
  return {};
}

RuntimeDecision RuntimeApi::call(const RuntimeCall& call, std::size_t body_bytes) {
  switch (call.route) {
    case RuntimeRoute::kNext: return next();
    case RuntimeRoute::kResponse:
    case RuntimeRoute::kError: return finish(call, body_bytes);
    case RuntimeRoute::kInitError:
      if (state_ != State::kStarting) return refuse(403, kInvalidState);
      return {.action = RuntimeAction::kInitError, .body = kOk};
    case RuntimeRoute::kPing: return refuse(200, "pong");
    case RuntimeRoute::kUnknown: break;
  }
  return refuse(404, kUnknownBody);
}

RuntimeDecision RuntimeApi::next() {
  if (unsent_) {
    unsent_ = false;
    return {.action = RuntimeAction::kSend, .status = 200};
  }
  if (running() || polling_) return refuse(403, kInvalidState);
  const bool announce = state_ != State::kWaiting;
  state_ = State::kWaiting;
  polling_ = true;
  return {.action = RuntimeAction::kPoll, .status = 200, .announce = announce};
}

RuntimeDecision RuntimeApi::finish(const RuntimeCall& call, std::size_t body_bytes) {
  if (state_ == State::kStarting || call.request_id != request_id_) return refuse(400, kInvalidRequestId);
  if (state_ != State::kRunning || unsent_) return refuse(403, kInvalidState);
  state_ = State::kAnswered;
  if (body_bytes > max_response_bytes_) {
    return {.action = RuntimeAction::kTooLarge, .status = 413, .body = kTooLargeBody};
  }
  const bool response = call.route == RuntimeRoute::kResponse;
  return {.action = response ? RuntimeAction::kAnswer : RuntimeAction::kFail, .body = kOk};
}

bool RuntimeApi::begin_stream(const RuntimeCall& call) {
  if (call.route != RuntimeRoute::kResponse || call.request_id != request_id_) return false;
  if (state_ != State::kRunning || unsent_) return false;
  state_ = State::kStreaming;
  return true;
}

RuntimeDecision RuntimeApi::end_stream() {
  FL_CHECK(streaming(), "the end of a stream that was not begun");
  state_ = State::kAnswered;
  return {.action = RuntimeAction::kAnswer, .body = kOk};
}

void RuntimeApi::cut_stream() {
  FL_CHECK(streaming(), "the cut of a stream that was not begun");
  state_ = State::kAnswered;
}

bool RuntimeApi::deliver(std::string_view request_id) {
  FL_CHECK(accepts_delivery(), "deliver {} to an instance that does not wait in next", request_id);
  request_id_.assign(request_id);
  state_ = State::kRunning;
  unsent_ = !polling_;
  polling_ = false;
  return !unsent_;
}

}  // namespace fairlead
