#include "edge/error_document.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "edge/json_body.h"

namespace fairlead {

namespace {

constexpr const char* kRetryAfterSeconds = "1";

std::string_view type_of(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument: return "InvalidParameterValueException";
    case Errc::kNotFound: return "ResourceNotFoundException";
    case Errc::kAlreadyExists:
    case Errc::kConflict: return "ResourceConflictException";
    case Errc::kTooLarge: return "RequestTooLargeException";
    case Errc::kResourceExhausted: return "TooManyRequestsException";
    case Errc::kUnauthenticated: return "UnrecognizedClientException";
    case Errc::kForbidden: return "AccessDeniedException";
    default: return "ServiceException";
  }
}

unsigned status_of(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument: return 400;
    case Errc::kNotFound: return 404;
    case Errc::kAlreadyExists:
    case Errc::kConflict: return 409;
    case Errc::kTooLarge: return 413;
    case Errc::kUnauthenticated: return 401;
    case Errc::kForbidden: return 403;
    case Errc::kResourceExhausted: return 429;
    case Errc::kUnavailable: return 503;
    case Errc::kDeadlineExceeded: return 504;
    default: return 500;
  }
}

}  // namespace

ErrorDocument error_document(const Error& error) {
  ErrorDocument result{status_of(error.code), type_of(error.code), error.message};
  if (error.code == Errc::kResourceExhausted) result.reason = "ConcurrentInvocationLimitExceeded";
  return result;
}

void respond_error(net::HttpExchange exchange, const ErrorDocument& error) {
  nlohmann::json body{{"Type", error.status < 500 ? "User" : "Service"}, {"Message", error.message}};
  if (!error.reason.empty()) body["Reason"] = error.reason;
  net::HttpResponse response{.status = error.status, .body = to_text(body)};
  response.headers = {{"Content-Type", "application/json"}, {"x-amzn-ErrorType", std::string(error.type)}};
  if (error.status == 429 || error.status == 503) response.headers.push_back({"Retry-After", kRetryAfterSeconds});
  if (error.status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  exchange.respond(std::move(response));
}

void respond_error(net::HttpExchange exchange, const Error& error) {
  respond_error(std::move(exchange), error_document(error));
}

void respond_unknown_operation(net::HttpExchange exchange, std::string allowed_methods) {
  const net::HttpRequest& request = exchange.request();
  const std::string what = fmt::format("{} {}", request.method(), request.target().substr(0, 256));
  const bool is_known = !allowed_methods.empty();
  const std::string message = is_known ? fmt::format("{}: this path allows {}", what, allowed_methods)
                                       : fmt::format("{}: there is no such operation", what);
  net::HttpResponse response{.status = is_known ? 405u : 404u,
                             .body = to_text({{"Type", "User"}, {"Message", message}})};
  response.headers = {{"Content-Type", "application/json"}, {"x-amzn-ErrorType", "UnknownOperationException"}};
  if (is_known) response.headers.push_back({"Allow", std::move(allowed_methods)});
  exchange.respond(std::move(response));
}

EdgeErrors document_errors() {
  return {.error = [](net::HttpExchange exchange, const Error& error) { respond_error(std::move(exchange), error); },
          .unknown = respond_unknown_operation};
}

}  // namespace fairlead
