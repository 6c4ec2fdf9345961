// Until when the callers of invocations wait that were not delivered yet; most callers give no deadline, and cost nothing here.
//
// Threads: not thread-safe. Determinism: at one instant the lower id is first.
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "base/ids.h"
#include "base/units.h"

namespace fairlead {

class RequestDeadlines {
 public:
  static constexpr Instant kNone = Instant::max();

  void add(InvocationId id, Instant at) {
    if (at != kNone) waiting_.insert({at, id});
  }
  void forget(InvocationId id, Instant at) {  // not there: no effect
    if (at != kNone) waiting_.erase({at, id});
  }
  Instant next() const { return waiting_.empty() ? kNone : waiting_.begin()->first; }
  // The first whose deadline is not after `now`, which is forgotten.
  std::optional<InvocationId> take_due(Instant now) {
    if (next() > now || waiting_.empty()) return std::nullopt;
    return waiting_.extract(waiting_.begin()).value().second;
  }

 private:
  std::set<std::pair<Instant, InvocationId>> waiting_;
};

}  // namespace fairlead
