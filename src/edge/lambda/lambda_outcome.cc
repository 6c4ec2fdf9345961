#include "edge/lambda/lambda_outcome.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/base64.h"
#include "base/json_bounds.h"
#include "model/version.h"

namespace fairlead {
namespace {

constexpr std::size_t kMaxTextBytes = 1000;

std::string error_document(std::string_view type, std::string_view message) {
  const nlohmann::json body{{"errorType", type}, {"errorMessage", message}};
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The type and the words before the text that Lambda has for what ended an invocation.
std::pair<std::string_view, std::string_view> words_for(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::kTimeout: return {"Sandbox.Timedout", "Task "};
    case OutcomeKind::kExpired: return {"Sandbox.DeadlineExceeded", "Task "};
    case OutcomeKind::kCrashed: return {"Runtime.ExitError", "Runtime exited: "};
    default: return {"Runtime.InitError", "The function did not start: "};
  }
}

}  // namespace

std::string lambda_payload(Outcome outcome) {
  const Failure& failure = outcome.failure;
  if (!failure.type.empty()) return error_document(failure.type, failure.text);
  const bool answered = outcome.kind == OutcomeKind::kSuccess || outcome.kind == OutcomeKind::kFunctionError;
  if (answered || !outcome.payload.empty()) return std::move(outcome.payload);
  const auto [type, words] = words_for(outcome.kind);
  return error_document(type, fmt::format("RequestId: {} Error: {}{}", outcome.request_id, words, failure.text));
}

std::string lambda_failure_text(const Outcome& outcome) {
  const std::string payload = lambda_payload(outcome);
  nlohmann::json said;
  if (check_json_bounds(payload, "the answer")) {
    said = nlohmann::json::parse(payload, nullptr, /*allow_exceptions=*/false);
  }
  const bool has_message = said.is_object() && said.contains("errorMessage") && said["errorMessage"].is_string();
  std::string text = has_message ? said["errorMessage"].get<std::string>() : payload;
  if (has_message && said.contains("errorType") && said["errorType"].is_string()) {
    text = said["errorType"].get<std::string>() + ": " + text;
  }
  if (text.size() > kMaxTextBytes) text = text.substr(0, kMaxTextBytes) + "...";
  return text;
}

std::string invoke_complete(const Outcome& outcome) {
  nlohmann::json said = nlohmann::json::object();
  if (outcome.failed()) {
    said["ErrorCode"] = "Unhandled";
    said["ErrorDetails"] = lambda_failure_text(outcome);
  }
  if (!outcome.log_tail.empty()) said["LogResult"] = base64_encode(outcome.log_tail);
  return said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

net::HttpResponse lambda_response(Outcome outcome) {
  net::HttpResponse response;
  auto& headers = response.headers;
  headers.reserve(10);
  std::string& type = outcome.content_type;
  headers.push_back({"Content-Type", type.empty() ? "application/json" : std::move(type)});
  headers.push_back({"x-amzn-RequestId", outcome.request_id});
  headers.push_back({"X-Amz-Executed-Version", version_name(outcome.version)});
  if (outcome.failed()) headers.push_back({"X-Amz-Function-Error", "Unhandled"});
  if (!outcome.log_tail.empty()) headers.push_back({"X-Amz-Log-Result", base64_encode(outcome.log_tail)});
  headers.push_back({"X-Gpu-Queue-Ms", fmt::format("{:.3f}", to_ms(outcome.queue_time))});
  headers.push_back({"X-Gpu-Exec-Ms", fmt::format("{:.3f}", to_ms(outcome.gpu_time))});
  if (outcome.first_byte) headers.push_back({"X-Gpu-First-Byte-Ms", fmt::format("{:.3f}", to_ms(*outcome.first_byte))});
  headers.push_back({"X-Gpu-Start", std::string(start_kind_name(outcome.start))});
  headers.push_back({"X-Gpu-Device", fmt::format("{}", outcome.gpu.value())});
  response.body = lambda_payload(std::move(outcome));
  return response;
}

}  // namespace fairlead
