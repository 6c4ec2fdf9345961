// The error document that edges share: a status, a name in x-amzn-ErrorType, and a JSON body {"Type", "Message"}. The names and
// the shape are AWS Lambda's, so that every AWS SDK turns them into typed exceptions and retries those that may be retried; the
// other edges have kept them for their clients (docs/reference/api.md). An edge with another shape has EdgeErrors of its own.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "edge/edge.h"
#include "net/http_server.h"

namespace fairlead {

struct ErrorDocument {
  unsigned status;
  std::string_view type;  // "ResourceNotFoundException"
  std::string message;
  std::string_view reason = {};  // of a TooManyRequestsException
};

// kInvalidArgument 400, kNotFound 404, kAlreadyExists and kConflict 409, kTooLarge 413, kResourceExhausted 429,
// kDeadlineExceeded 504, kUnavailable 503, kUnauthenticated 401, kForbidden 403, the others 500.
ErrorDocument error_document(const Error& error);

// 429 and 503 carry Retry-After.
void respond_error(net::HttpExchange exchange, const ErrorDocument& error);
void respond_error(net::HttpExchange exchange, const Error& error);

// 404, or 405 when the path exists for other methods.
void respond_unknown_operation(net::HttpExchange exchange, std::string allowed_methods);

// Both of the above.
EdgeErrors document_errors();

}  // namespace fairlead
