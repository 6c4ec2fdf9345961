// What the node's history says of its invocations: one record of each, when it is over (core/invocation_record.h). Nothing
// where no history is kept.
//
// Threads: the io_context's thread.
#pragma once

#include <memory>

#include "decide/core/invocation_record.h"
#include "node/functions.h"
#include "node/history.h"

namespace fairlead {

class InvocationNotes {
 public:
  // `epoch`: of the monotonic clock, since 1970.
  InvocationNotes(Functions& functions, Duration epoch) : functions_(functions), epoch_(epoch) {}

  void set_history(std::unique_ptr<History> history) { history_ = std::move(history); }
  History* history() { return history_.get(); }  // null: none is kept

  // The invocation was refused at its arrival, now.
  void refused(Instant now, FlowId flow);
  // Of one that is over; all but what only its instance knows. Empty: nothing is kept of it.
  std::optional<InvocationRecord> record_of(Instant arrived, const Complete& complete) const;
  void add(const InvocationRecord& record);

 private:
  std::int64_t since_1970_us(Instant at) const;

  Functions& functions_;
  const Duration epoch_;
  std::unique_ptr<History> history_;
};

}  // namespace fairlead
