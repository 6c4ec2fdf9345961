// One call of a function: what its caller gave, and what became of it. Two values between the edge that took the call and the
// runner that delivers it. Who adds a field adds it here and nowhere else: the node, its store of asynchronous calls and all
// runners pass the values on.
//
//   edge ──Invocation──> node ──(asynchronous: on disk and back)──> runner ──> function
//   edge <───Outcome──── node <────────────Answer or end──────────── runner <──┘
//
// No protocol's word is in them: each edge prints an Outcome in its own.
//
// Plain values. They own their bytes; moved, not copied, on the way of a synchronous call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace fairlead {

// How a caller asked over HTTP, for functions that are told: an edge whose functions are web applications fills it.
struct HttpPart {
  std::string method;
  std::string path;                                          // as sent, with the query
  std::vector<std::pair<std::string, std::string>> headers;  // in their order

  bool operator==(const HttpPart&) const = default;
};

struct Invocation {
  std::string request_id;      // UUID, given by the node when it accepts the call
  std::string function;        // bare name
  std::string tenant;          // whose function it is; given by the node
  std::string payload;         // as the caller sent it
  std::string client_context;  // decoded; empty: none
  std::string trace_id;        // as the caller's edge has it; empty: none
  std::optional<std::int64_t>
      deadline_ms;               // since 1970: it begins before, and is ended where it still runs. None: no bound
  std::optional<HttpPart> http;  // none: the edge has no such thing
  std::uint64_t version = 0;     // a published one of the function's, chosen when it was accepted; 0: $LATEST
};

// What an invocation found when it was dispatched.
enum class StartKind {
  kDeviceWarm,  // an instance, and its memory on the device
  kHostWarm,    // an instance whose memory is, at least in part, on the host or on its way
  kCold,        // no instance
};
std::string_view start_kind_name(StartKind start);  // "device-warm", "host-warm", "cold"

// How an invocation came to the instance that runs it.
struct Delivery {
  StartKind start = StartKind::kDeviceWarm;
  Duration queue_time{0};  // from arrival to delivery
  GpuId gpu;
};

enum class OutcomeKind {
  kSuccess,
  kFunctionError,  // the function answered with an error
  kTimeout,        // killed at its deadline
  kCrashed,        // its instance ended while it ran
  kStartFailed,    // its instance never became ready: it exited first, or took too long
  kCancelled,
  kRemoved,   // its function was deleted
  kShutdown,  // the node stopped before it ran
  kExpired,   // its caller's deadline passed before it was delivered
};
std::string_view outcome_name(OutcomeKind outcome);  // "success", "function_error", "timeout", ...

// Why nothing came back from a function itself.
struct Failure {
  std::string type;  // what its runner calls it ("KernelTask.InvalidTask"); empty: the outcome's kind says all
  std::string text;  // for people: "exit status 3"

  bool operator==(const Failure&) const = default;
};

// Of an invocation that ran, or tried to: kSuccess to kStartFailed, and kExpired.
struct Outcome {
  std::string request_id;
  OutcomeKind kind = OutcomeKind::kSuccess;
  std::string payload;  // what the function said, a result or an error; empty beside a failure
  bool was_streamed =
      false;  // what it said went to the caller's AnswerStream, and `payload` is only what went wrong then
  std::string content_type;  // of the payload; empty: not stated
  Failure failure;           // of one that the function said nothing of
  std::string log_tail;      // where it was asked for
  StartKind start = StartKind::kDeviceWarm;
  Duration queue_time{0};  // from arrival to delivery
  Duration gpu_time{0};    // charged
  GpuId gpu;
  std::optional<Duration> first_byte;  // of one that was streamed: from arrival to the first byte of its answer
  std::uint64_t version = 0;           // that was called; 0: $LATEST

  bool failed() const { return kind != OutcomeKind::kSuccess; }
};

}  // namespace fairlead
