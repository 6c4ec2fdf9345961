#include "node/invocation_notes.h"

#include <algorithm>

namespace fairlead {
namespace {

// The history is read by those who take its names for functions' (`fairlead sim record`).
void set_name(InvocationRecord& record, const RegisteredFunction& function) {
  if (!function.requested) return record.set_function(function.record.name);
  std::string name = function.record.name;
  std::replace(name.begin(), name.end(), ':', '-');
  record.set_function(name);
}

}  // namespace

std::int64_t InvocationNotes::since_1970_us(Instant at) const {
  return std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch() + epoch_).count();
}

void InvocationNotes::refused(Instant now, FlowId flow) {
  if (!history_) return;
  InvocationRecord record;
  record.at_us = since_1970_us(now);
  set_name(record, *functions_.find(flow));
  history_->add(record);
}

std::optional<InvocationRecord> InvocationNotes::record_of(Instant arrived, const Complete& complete) const {
  const RegisteredFunction* const function = history_ ? functions_.find(complete.flow) : nullptr;
  if (function == nullptr) return std::nullopt;
  InvocationRecord record{.outcome = complete.outcome};
  record.at_us = since_1970_us(arrived);
  set_name(record, *function);
  record.queue = complete.queue_time;
  record.starting = complete.start_time;
  record.instance_start = complete.instance_start;
  return record;
}

void InvocationNotes::add(const InvocationRecord& record) {
  if (history_) history_->add(record);
}

}  // namespace fairlead
