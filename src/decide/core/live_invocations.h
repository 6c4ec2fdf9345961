// The invocations of a node that are not over: each from its arrival to its completion, and what their callers are told.
//
//   arrive ──> queued ──dispatched──> bound to an instance ──deliver──> running ──complete──> Complete, over
//                │  ^                       │                              └──answer_early──> Complete, works on ──charge──> Charge, over
//                │  └─────────requeue───────┴──expire──> Complete, expired: bound still, and nobody waits ──forget──> over
//                └──complete──> Complete, over
//
// Exactly one Complete goes out for each that arrived, whatever happens in between, and one Charge for each that answered early.
//
// A caller may have a deadline. It counts until the delivery: from then on the run has one (Runs). A caller's deadline that passes
// is given once (take_due).
//
// Example: 1 arrives at 0 s with a deadline of 5 s, and is bound to an instance that starts for 9 s. At 5 s it is due: expire() says so
// to its caller. It stays until the start is over, because its flow pays for the slot; forget() then says nothing.
//
// Who chooses, binds and charges is not here: the queue, the pool and Runs do that.
//
// Time: given. Threads: not thread-safe. Determinism: at one instant the lower id is due first.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/id_map.h"
#include "base/ids.h"
#include "base/units.h"
#include "decide/core/core.h"
#include "decide/core/request_deadlines.h"
#include "model/invocation.h"

namespace fairlead {

// In its flow's queue while `instance` is none.
struct LiveInvocation {
  FlowId flow;
  TenantId tenant;  // of its function when it arrived
  Instant arrived;
  Instant dispatched;
  Instant delivered;
  Instant run_deadline;  // once it is delivered
  InstanceId instance;
  StartKind start = StartKind::kCold;
  bool running = false;                        // delivered
  bool answered = false;                       // completed, while its work on the device goes on
  bool expired = false;                        // completed, while what it was dispatched to is not ready for it yet
  Instant deadline = RequestDeadlines::kNone;  // its caller's
  Duration stated{0};                          // GPU time that its Complete stated, once it has answered
  Duration owed{0};                            // that it was charged beyond its own use
  Duration instance_start{0};                  // of a cold one, once it is delivered

  Instant since() const { return running ? delivered : dispatched; }
};

class LiveInvocations {
 public:
  // As CoreCounters.
  struct Counts {
    std::uint64_t arrived = 0, refused = 0, completed = 0, failed = 0, device_warm_starts = 0, host_warm_starts = 0;
  };

  bool empty() const { return all_.empty(); }
  std::vector<InvocationId> ids() const { return all_.ids(); }     // sorted
  LiveInvocation* find(InvocationId id) { return all_.find(id); }  // null: it is over, or never was
  LiveInvocation& at(InvocationId id) { return all_.at(id); }      // REQUIRES of all below: it is there
  const LiveInvocation& at(InvocationId id) const { return all_.at(id); }
  const Counts& counts() const { return counts_; }

  // A tenant is known once it has had a function.
  void know(TenantId tenant) { tenants_.insert(tenant); }
  bool has_several_tenants() const { return tenants_.size() > 1; }
  std::size_t of(TenantId tenant) const {  // how many of its invocations are not over
    return tenant.value() < of_.size() ? of_[static_cast<std::size_t>(tenant.value())] : 0;
  }

  void refuse() { ++counts_.refused; }  // one that never was
  // REQUIRES: no other ever had its id.
  void arrive(Instant now, InvocationId id, FlowId flow, TenantId tenant, Instant deadline);
  // Its instance has it, and may run it until `run_deadline`.
  void deliver(Instant now, InvocationId id, Instant run_deadline);
  // It is back in its flow's queue, as if it had not been chosen.
  void requeue(InvocationId id);

  // The first whose caller waited until `now` or less; each is given once.
  std::optional<InvocationId> take_due(Instant now) { return deadlines_.take_due(now); }
  Instant next_due() const { return deadlines_.next(); }  // Instant::max(): never

  // Over. Nothing is appended for one that has expired.
  void complete(Instant now, InvocationId id, OutcomeKind outcome, Duration service, Actions& out);
  // Completed, while its work on the device goes on; `service` so far.
  void answer_early(Instant now, InvocationId id, OutcomeKind outcome, Duration service, Actions& out);
  // Completed, while its instance is not ready for it.
  void expire(Instant now, InvocationId id, Actions& out);
  // Over, of one that answered early: `service` of all its work.
  void charge(InvocationId id, Duration service, Actions& out);
  // Over, of one that has expired.
  void forget(InvocationId id);

 private:
  void append_completion(Instant now, InvocationId id, OutcomeKind outcome, Duration service, Actions& out);

  IdMap<InvocationId, LiveInvocation> all_;
  RequestDeadlines deadlines_;   // of callers of what was not delivered yet
  std::vector<std::size_t> of_;  // by tenant; they count up from 0
  std::set<TenantId> tenants_;
  Counts counts_;
};

}  // namespace fairlead
