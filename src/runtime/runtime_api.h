// The Lambda Runtime API of one instance, without its sockets: which call is allowed when, and what it is answered.
// Source: AWS, "Using the Lambda runtime API" (2018-06-01).
//
//   starting --next--> waiting --deliver--> running --response|error--> answered --next--> waiting ...
//                                             └─begin_stream─> streaming ──end_stream, cut_stream──┘
//
// Example: `response` for the running invocation is 202 and ends it; the same call again is 403 InvalidStateTransition
// (it was answered); the same call for an id never delivered is 400 InvalidRequestID.
// Threads: not thread-safe. Time: none. Payloads are never seen here, only their sizes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fairlead {

enum class RuntimeRoute { kNext, kResponse, kError, kInitError, kPing, kUnknown };

struct RuntimeCall {
  RuntimeRoute route = RuntimeRoute::kUnknown;
  std::string_view request_id;  // kResponse and kError; a part of `target`
};

RuntimeCall parse_runtime_call(std::string_view method, std::string_view target);

enum class RuntimeAction {
  kReply,      // nothing but the reply
  kPoll,       // no reply yet: the call waits for deliver()
  kSend,       // reply with the invocation delivered while no call was waiting
  kAnswer,     // the invocation is answered by the body
  kFail,       // the invocation is answered by the body, an error
  kTooLarge,   // the invocation is answered by kResponseTooLarge in place of the body
  kInitError,  // the body says why the function cannot start
};

struct RuntimeDecision {
  RuntimeAction action = RuntimeAction::kReply;
  unsigned status = 202;
  std::string_view body = {};  // JSON, static
  bool announce = false;       // tell the core that the instance waits for an invocation
};

inline constexpr std::string_view kResponseTooLarge = "Function.ResponseSizeTooLarge";

class RuntimeApi {
 public:
  explicit RuntimeApi(std::size_t max_response_bytes) : max_response_bytes_(max_response_bytes) {}

  RuntimeDecision call(const RuntimeCall& call, std::size_t body_bytes);

  // The waiting `next` call's client has disconnected. The instance still counts as waiting: what is delivered now is
  // sent at its following `next`.
  void poll_lost() { polling_ = false; }

  bool accepts_delivery() const { return state_ == State::kWaiting; }
  // True: answer the waiting `next` call now. False: none is connected, the following one gets kSend.
  // REQUIRES: accepts_delivery().
  bool deliver(std::string_view request_id);

  // The head of a `response` is there whose body may go on as it comes. False: its body is to be collected, and call() answers it.
  bool begin_stream(const RuntimeCall& call);
  // That body is whole. REQUIRES: it was begun, and neither ended nor cut.
  RuntimeDecision end_stream();
  // It ended in the middle: the invocation is answered, as an error, and the function may ask for the next one.
  void cut_stream();
  bool streaming() const { return state_ == State::kStreaming; }

  bool running() const { return state_ == State::kRunning || streaming(); }
  bool initialized() const { return state_ != State::kStarting; }

 private:
  enum class State { kStarting, kWaiting, kRunning, kStreaming, kAnswered };

  RuntimeDecision next();
  RuntimeDecision finish(const RuntimeCall& call, std::size_t body_bytes);

  std::size_t max_response_bytes_;
  State state_ = State::kStarting;
  bool polling_ = false;    // a `next` call is connected and waits
  bool unsent_ = false;     // delivered, but no `next` call has carried it yet
  std::string request_id_;  // the running or the last invocation
};

}  // namespace fairlead
