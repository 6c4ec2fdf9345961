// Which trace a call belongs to, as callers say it and as functions are told: W3C's `traceparent` and AWS's `X-Amzn-Trace-Id`. Both name a
// trace of 128 bits and the span of 64 that called; either is written as the other without a loss.
//
//   traceparent:      00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01
//   X-Amzn-Trace-Id:  Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1
//
// An Invocation carries the second form (Invocation::trace_id). A caller's `tracestate` is not carried on.
//
// Sources: W3C Trace Context, level 1, section 3.2; AWS X-Ray's developer guide, "Tracing header".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fairlead {

struct TraceContext {
  std::uint64_t trace_high = 0, trace_low = 0;  // not both 0
  std::uint64_t span = 0;                       // of who called; 0: none is named, as at a trace's beginning
  std::optional<bool> is_sampled;               // empty: whoever comes next decides

  bool operator==(const TraceContext&) const = default;
};

// Empty: it is not one. What is behind a later version's known part is left alone, as W3C wants.
std::optional<TraceContext> parse_traceparent(std::string_view text);
// Empty: it has no Root of X-Ray's form. Other fields, in any order, are left alone.
std::optional<TraceContext> parse_amzn_trace(std::string_view text);

// REQUIRES: context.span is not 0. What nobody decided is not sampled.
std::string to_traceparent(const TraceContext& context);
std::string to_amzn_trace(const TraceContext& context);

// 16 digits, lower case.
std::string to_hex(std::uint64_t number);
void append_hex(std::string& out, std::uint64_t number);

}  // namespace fairlead
