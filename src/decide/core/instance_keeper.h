// An instance comes, is stopped, is forgotten: in the pool, in residency, in the deadlines and in what the queue is told, all at once,
// so that no other part can leave one of them out. Why it comes or goes is decided by others.
//
//   start ──> StartInstance     stop, evict ──> StopInstance, forgotten      kill ──> StopInstance, there until forget()
//
// An instance has one deadline at most: until it is ready, until the answer, until it asks for the next. One that is idle has none.
//
// Example: A's instance starts at 0 s with a deadline of 60 s. It is ready and idle at 9 s: no deadline. It is evicted at 12 s for B's:
// StopInstance evicted; the pool has its place free, residency counts its memory until it is gone, and the queue hears that A has
// nothing to run on.
//
// Threads: the core's.
#pragma once

#include <cstdint>
#include <optional>

#include "decide/core/deadlines.h"
#include "decide/core/flow_news.h"
#include "decide/core/tables.h"
#include "decide/placement/placer.h"
#include "decide/residency/residency.h"

namespace fairlead {

class InstanceKeeper {
 public:
  InstanceKeeper(CoreTables& tables, Residency& residency, FlowNews& news)
      : tables_(tables), residency_(residency), news_(news) {}

  // `bound`: holding a slot for it; none: ahead. REQUIRES: what is in its way has gone.
  InstanceId start(Instant now, FlowId flow, const Placement& placement, InvocationId bound, Actions& out);
  // REQUIRES of all below: it is there.
  void stop(Instant now, InstanceId id, StopReason reason, Actions& out);
  void evict(Instant now, InstanceId id, Actions& out);
  void kill(Instant now, InstanceId id, StopReason reason,
            Actions& out);  // what is bound to it is the caller's to end; then forget()
  void forget(InstanceId id);

  // What was bound to it is over: its slot is free, and it has return_deadline to ask for the next.
  void rest(Instant now, Instance& instance);
  // Placement counts what residency knows of its memory.
  void count_memory(Instance& instance);
  // Its next invocation brings back data for so long (Core::set_reload). Not there: no effect.
  void set_reload(InstanceId id, Duration reload);

  void set_deadline(InstanceId id, Instant at) { deadlines_.set(id, at); }  // instead of the one it had
  void clear_deadline(InstanceId id) { deadlines_.clear(id); }
  std::optional<InstanceId> overdue(Instant now) const;  // the first whose deadline is `now` or before
  Instant next_deadline() const { return deadlines_.empty() ? Instant::max() : deadlines_.next(); }

  std::uint64_t started() const { return started_; }
  std::uint64_t evicted() const { return evicted_; }

 private:
  CoreTables& tables_;
  Residency& residency_;
  FlowNews& news_;
  Deadlines deadlines_;
  std::uint64_t started_ = 0, evicted_ = 0;
};

}  // namespace fairlead
