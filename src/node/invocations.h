// Invocations between acceptance and their end: who waits for each, what was delivered where, what came back; and the repeats
// of clients that lost patience, which join the running invocation or get its reply.
//
//   invoke / admit ──arrive──> core ──Deliver──> deliver() ──> runner ──> answered() ──> core ──Complete──> act() ──> waiters
//
// Example: an SDK whose read timed out sends the same invocation again under the same id. The first is running: the second
// waits with it, the function runs once, both get its reply.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "edge/node_service.h"
#include "node/charges.h"
#include "node/core_driver.h"
#include "node/functions.h"
#include "node/invocation_notes.h"
#include "node/latency_book.h"
#include "node/recent_replies.h"
#include "node/recent_requests.h"
#include "node/request_id.h"
#include "node/traces/tracer.h"
#include "node/usage_meter.h"
#include "runtime/instance_host.h"

namespace fairlead {

// How an invocation that no connection waits for ended.
struct Ended {
  const Complete& complete;
  const Outcome* outcome;       // null: it did not run
  bool is_nodes_fault = false;  // it failed, and neither its function nor its caller could help it
};

// Who is told of requests that are over, beside their callers. Null: nobody is. They outlive the node.
struct RequestSinks {
  Tracer* traces = nullptr;
  UsageMeter* usage = nullptr;
  LatencyBook* latencies = nullptr;
};

inline constexpr RequestSinks kNoSinks;

class Invocations {
 public:
  template <typename T>
  using Callback = NodeService::Callback<T>;
  using CancelHandle = NodeService::CancelHandle;
  using Over = std::function<void(const Ended&)>;

  Invocations(CoreDriver& driver, Functions& functions, RequestIds& request_ids, Charges& charges,
              InvocationNotes& notes);

  // Replies that are kept for repeats, as RecentReplies has it.
  void count_in(std::shared_ptr<ByteBudget> memory) { recent_.count_in(std::move(memory)); }

  // Who is told that nobody waits for an invocation any more, which its instance has.
  void on_abandoned(std::function<void(InstanceId, InvocationId)> abandoned) { abandoned_ = std::move(abandoned); }

  // Whether anybody still waits for its end. Those that were submitted are waited for.
  bool is_wanted(InvocationId invocation) const;

  void tell(const RequestSinks* sinks) { sinks_ = sinks; }  // who outlives it; they may come and go

  CancelHandle invoke(const RegisteredFunction& function, InvokeRequest request, Callback<Outcome> done);
  // An asynchronous one, which has its request id. Its payload is kept until it is over: it may have to be sent again. Its
  // deadline is by the monotonic clock, whatever the time of day was set to since it was accepted.
  Status submit(FlowId flow, Invocation invocation, Instant deadline, Over over);
  // Those that were submitted leave the queue. What runs, runs on.
  void cancel_submitted(Instant now, Actions& out);

  // For the runner; from here on the invocation runs.
  DeliverRequest deliver(const Deliver& action);
  // Takes the answer in. False: it is over already. REQUIRES: it was delivered.
  bool answered(Answer answer);
  bool wants_log_tail(InvocationId invocation) const;
  void set_log_tail(InvocationId invocation, std::string log_tail);
  // The memory of its instance came back to the device, last, in so long.
  void memory_returned(InvocationId invocation, Instant ended, Duration took);
  void instance_gone(InvocationId invocation, const ExitInfo& exit);
  void act(const Complete& complete);

  std::size_t live() const { return live_.size(); }
  RecentRequests& requests() { return requests_; }  // that are over

 private:
  struct Waiter {
    Callback<Outcome> done;
    bool want_log_tail = false;
    std::uint64_t ticket = 0;  // for cancelling
  };
  struct Live {
    FlowId flow;
    Invocation invocation;
    std::string repeat_key;  // "" when the client gave no id
    std::vector<Waiter> waiters;
    std::shared_ptr<AnswerStream> stream;  // the first waiter's
    std::optional<SpanIds> spans;          // empty: it leaves no trace
    Over over;                             // of one that was submitted
    Instant arrived;
    // From delivery on:
    Instant delivered;
    InstanceId instance;
    GpuId gpu;
    Duration timeout{0};
    Duration memory{0};  // of bringing back its instance's, since it came
    Instant memory_ended;
    std::optional<Answer> answer;
    std::string failure;          // why its instance ended
    bool is_nodes_fault = false;  // that it ended
    std::string log_tail;
  };

  Result<InvocationId> admit(Live live, Instant deadline);
  void cancel_waiter(InvocationId invocation, std::uint64_t ticket);
  static void end_by_nodes_fault(Live& live, const Complete& complete, Outcome outcome);
  std::string_view name_of(FlowId flow, const Invocation& invocation) const;
  void each_running(const RecentRequests::Visit& visit) const;
  void note(const Live& live, const Complete& complete);
  void remember(const Live& live, const Complete& complete, std::string failure, std::optional<Duration> first_byte);
  void tell(const Live& live, const RequestTrace& trace, const RecentRequests::Times& times);
  static Outcome outcome_of(Live& live, const Complete& complete);

  CoreDriver& driver_;
  Functions& functions_;
  RequestIds& request_ids_;
  Charges& charges_;
  InvocationNotes& notes_;
  const RequestSinks* sinks_ = &kNoSinks;
  std::function<void(InstanceId, InvocationId)> abandoned_;
  RecentRequests requests_;
  RecentReplies recent_;
  std::unordered_map<InvocationId, Live> live_;
  std::unordered_map<std::string, InvocationId> live_by_repeat_key_;
  std::uint64_t last_invocation_ = 0;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace fairlead
