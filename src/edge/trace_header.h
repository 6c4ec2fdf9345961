// Which trace a request belongs to, whichever of the two headers says so: `traceparent` before `X-Amzn-Trace-Id`.
#pragma once

#include <string>

#include "model/trace_context.h"
#include "net/http_server.h"

namespace fairlead {

// As Invocation::trace_id wants it. An X-Amzn-Trace-Id goes on as it came, whatever it says.
inline std::string trace_id_of(const net::HttpRequest& http) {
  if (const auto context = parse_traceparent(http.header("traceparent"))) return to_amzn_trace(*context);
  return std::string(http.header("X-Amzn-Trace-Id"));
}

}  // namespace fairlead
