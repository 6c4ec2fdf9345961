// The beginning of a streamed answer that is an HTTP answer, as AWS Lambda's runtimes send it under the Content-Type kPreludeType:
//
//   {"statusCode": 404, "headers": {"Content-Type": "text/html"}, "cookies": ["a=b"]} | 8 NUL bytes | body ...
//
// Example: fed "{}", "\0\0\0\0\0\0\0\0<p>" it is whole after the second piece, with the status 200, no headers, and "<p>" left over.
//
// What a function writes here is a client's to see, and no more: headers that frame a message or a connection, and those that the node says
// itself, are left out; what is no name or value of a header is an error.
//
// Source: the response streaming of AWS Lambda's Node.js runtime (HttpResponseStream). Pure; not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http_server.h"

namespace fairlead {

inline constexpr std::string_view kPreludeType = "application/vnd.awslambda.http-integration-response";
inline constexpr std::size_t kMaxPreludeBytes = 64 << 10;

struct StreamPrelude {
  unsigned status = 200;
  std::vector<net::Header> headers;
  bool has_body() const { return status != 204 && status != 304; }
};

class PreludeReader {
 public:
  // None: it goes on. kInvalidArgument: it is no prelude, and never will be.
  Result<std::optional<StreamPrelude>> feed(std::string_view bytes);
  // What followed it. REQUIRES: it was whole.
  std::string take_rest() { return std::move(collected_); }

 private:
  std::string collected_;
};

}  // namespace fairlead
