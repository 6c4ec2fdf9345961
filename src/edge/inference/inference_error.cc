#include "edge/inference/inference_error.h"

#include <utility>

#include "edge/error_document.h"
#include "edge/json_body.h"

namespace fairlead::inference {
namespace {

void respond(net::HttpExchange exchange, unsigned status, const std::string& text) {
  respond_json(std::move(exchange), status, {{"error", text}});
}

}  // namespace

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

void refuse(net::HttpExchange exchange, const Error& error) {
  respond(std::move(exchange), error_document(error).status, error.message);
}

EdgeErrors errors() {
  return {.error = [](net::HttpExchange exchange, const Error& error) { refuse(std::move(exchange), error); },
          .unknown =
              [](net::HttpExchange exchange, const std::string& allowed) {
                const net::HttpRequest& request = exchange.request();
                const std::string what = fmt::format("{} {}", request.method(), request.target().substr(0, 256));
                if (allowed.empty()) return respond(std::move(exchange), 404, what + ": there is no such operation");
                respond(std::move(exchange), 405, fmt::format("{}: this path allows {}", what, allowed));
              }};
}

}  // namespace fairlead::inference
