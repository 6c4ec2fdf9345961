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
#include <unordered_map>
#include <vector>

#include "edge/node_service.h"
#include "node/charges.h"
#include "node/core_driver.h"
#include "node/functions.h"
#include "node/invocation_notes.h"
#include "node/recent_replies.h"
#include "node/request_id.h"
#include "runtime/instance_host.h"

namespace fairlead {

// How an invocation that no connection waits for ended.
struct Ended {
  const Complete& complete;
  const Outcome* outcome;       // null: it did not run
  bool is_nodes_fault = false;  // it failed, and neither its function nor its caller could help it
};

class Invocations {
 public:
  template <typename T>
  using Callback = NodeService::Callback<T>;
  using CancelHandle = NodeService::CancelHandle;
  using Over = std::function<void(const Ended&)>;

  Invocations(CoreDriver& driver, Functions& functions, RequestIds& request_ids, Charges& charges,
              InvocationNotes& notes);

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
  void instance_gone(InvocationId invocation, const ExitInfo& exit);
  void act(const Complete& complete);

  std::size_t live() const { return live_.size(); }

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
    Over over;                             // of one that was submitted
    Instant arrived;
    // From delivery on:
    Instant delivered;
    InstanceId instance;
    GpuId gpu;
    Duration timeout{0};
    std::optional<Answer> answer;
    std::string failure;          // why its instance ended
    bool is_nodes_fault = false;  // that it ended
    std::string log_tail;
  };

  Result<InvocationId> admit(Live live, Instant deadline);
  void cancel_waiter(InvocationId invocation, std::uint64_t ticket);
  static void end_by_nodes_fault(Live& live, const Complete& complete, Outcome outcome);
  void note(const Live& live, const Complete& complete);
  static Outcome outcome_of(Live& live, const Complete& complete);

  CoreDriver& driver_;
  Functions& functions_;
  RequestIds& request_ids_;
  Charges& charges_;
  InvocationNotes& notes_;
  RecentReplies recent_;
  std::unordered_map<InvocationId, Live> live_;
  std::unordered_map<std::string, InvocationId> live_by_repeat_key_;
  std::uint64_t last_invocation_ = 0;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace fairlead
