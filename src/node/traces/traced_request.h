// A request that is over and whose trace is kept: what its spans are made of.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "edge/request_service.h"
#include "model/trace_context.h"

namespace fairlead {

// Chosen when the request comes, because its function is told of them.
struct SpanIds {
  TraceContext caller;     // the trace, and the span that called; TraceContext::span is 0 where nobody did
  std::uint64_t root = 0;  // of the request
  std::uint64_t work = 0;  // of its run, whose children are what the function does; of a forward: the same as `root`
};

struct TracedRequest {
  SpanIds ids;
  RequestTrace request;       // `ahead` is empty
  std::string peer;           // it was given to this node; "": it is of this one
  std::int64_t began_ns = 0;  // since 1970; the following are from there on
  Duration chosen{0};         // where it never ran: its end
  Duration delivered{0};
  Duration memory_ended{0};  // RequestTrace::memory ended then
  Duration over{0};

  bool has_run() const { return static_cast<bool>(request.gpu); }
};

}  // namespace fairlead
