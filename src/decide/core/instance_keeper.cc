#include "decide/core/instance_keeper.h"

#include <algorithm>

namespace fairlead {

InstanceId InstanceKeeper::start(Instant now, FlowId flow, const Placement& placement, InvocationId bound,
                                 Actions& out) {
  Instance& started = tables_.pool.add(now, flow, placement.gpu, placement.memory, bound);
  InstanceTerms terms = placement.terms;
  terms.is_session = tables_.functions.at(flow).spec.is_kernel_task;
  if (terms.is_session || terms.is_seated) tables_.pool.set_terms(started, terms);
  residency_.add(now, started.id, flow, started.gpu, placement.memory);
  news_.note_setup(flow);
  news_.note_supply(flow);
  set_deadline(started.id, now + tables_.options.start_deadline);
  ++started_;
  out.push_back(StartInstance{started.id, flow, started.gpu, terms.is_entitled});
  return started.id;
}

void InstanceKeeper::evict(Instant now, InstanceId id, Actions& out) {
  stop(now, id, StopReason::kEvicted, out);
  ++evicted_;
}

void InstanceKeeper::stop(Instant now, InstanceId id, StopReason reason, Actions& out) {
  kill(now, id, reason, out);
  forget(id);
}

void InstanceKeeper::kill(Instant now, InstanceId id, StopReason reason, Actions& out) {
  out.push_back(StopInstance{id, reason});
  residency_.stopping(now, id);
}

void InstanceKeeper::forget(InstanceId id) {
  deadlines_.forget(id);
  const FlowId flow = tables_.pool.find(id)->flow;
  tables_.pool.remove(id);
  news_.note_setup(flow);
  news_.note_supply(flow);
}

void InstanceKeeper::rest(Instant now, Instance& instance) {
  tables_.pool.release(instance);
  news_.note_setup(instance.flow);
  residency_.rest(now, instance.id);
  count_memory(instance);
  instance.last_used = now;
  instance.idle_since = now;
  set_deadline(instance.id, now + tables_.options.return_deadline);
}

// A program's memory that is away counts as a reload. Who has none of it on the device waits for the link, and others wait meanwhile:
// so it is worth serving all that such a flow has queued at once.
void InstanceKeeper::count_memory(Instance& instance) {
  const Residency::Standing standing = residency_.standing(instance.id);
  instance.needed = counted_memory(instance, standing.needed);
  tables_.pool.count_memory(instance, std::max(instance.memory, instance.needed),
                            counted_memory(instance, standing.pinned));
  if (!standing.reload || *standing.reload == instance.reload) return;
  instance.reload = *standing.reload;
  news_.note_setup(instance.flow);
}

void InstanceKeeper::set_reload(InstanceId id, Duration reload) {
  Instance* instance = tables_.pool.find(id);
  if (instance == nullptr) return;
  if (CoreFunction* function = tables_.functions.find(instance->flow)) function->keeps_data = true;
  instance->reload = reload;
  news_.note_setup(instance->flow);
}

std::optional<InstanceId> InstanceKeeper::overdue(Instant now) const {
  return !deadlines_.empty() && deadlines_.next() <= now ? std::optional(deadlines_.first()) : std::nullopt;
}

}  // namespace fairlead
