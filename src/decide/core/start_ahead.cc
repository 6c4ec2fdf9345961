// Instances that start without a slot, ahead of the choice of what they will run. Which, where and in whose place is start_planner.h's
// to say, with the idea and what must not happen; here they start.
#include "base/check.h"
#include "decide/core/state.h"

namespace fairlead {
namespace {

// What the queue asks while it chooses whose instance starts next.
class Startable final : public Placeable {
 public:
  Startable(const StartPlanner& planner, const Dispatchable& dispatchable, const InstancePool& pool)
      : planner_(planner), dispatchable_(dispatchable), pool_(pool) {}
  bool can_run(FlowId flow) const override { return obstacle(flow) == Obstacle::kNothing; }
  Obstacle obstacle(FlowId flow) const override {
    const Obstacle found = planner_.obstacle(flow);
    dispatchable_.note_start(flow, found);
    return found;
  }
  bool may_start() const override { return planner_.may_start(); }
  bool has_free_slot() const override { return pool_.has_turn(); }
  std::vector<Place> places(FlowId flow) const override { return dispatchable_.places(flow); }

 private:
  const StartPlanner& planner_;
  const Dispatchable& dispatchable_;
  const InstancePool& pool_;
};

}  // namespace

// Work that waits goes first; then functions that nobody has called yet, in the order in which they came, where a place is free.
void Core::State::start_prepared(Instant now, Actions& out) {
  while (!kept.to_prepare.empty() && planner.may_start()) {
    const FlowId flow = kept.to_prepare.front();
    kept.to_prepare.pop_front();
    if (tables.draining || !tables.functions.contains(flow)) continue;
    const auto placement = planner.place_prepared(flow);
    if (!placement) continue;
    const InstanceId started = keeper.start(now, flow, *placement, InvocationId(), out);
    tables.pool.take(*tables.pool.find(started), InstanceEvent::kPrepares);
  }
}

// Terminates: each start takes one of the starts that are allowed at a time.
void Core::State::start_ahead(Instant now, Actions& out) {
  while (tables.queue->queued() > 0 && planner.may_start()) {
    const auto flow = tables.queue->next_start(now, Startable(planner, dispatchable, tables.pool));
    if (!flow) return;
    const auto placement = planner.place(*flow);
    FL_CHECK(placement, "flow {} was chosen and cannot be started", flow->value());
    claim.keep(tables, residency, placer);
    for (const InstanceId victim : placement->evict) keeper.evict(now, victim, out);
    keeper.start(now, *flow, *placement, InvocationId(), out);
  }
}

// It was not ready and will not be.
void Core::State::fail_start(Instant now, const Instance& instance, Actions& out) {
  if (!instance.starts_ahead() || !tables.functions.contains(instance.flow)) return;
  const auto head = tables.queue->fail_head(now, instance.flow, now - instance.last_used);
  if (head) tables.invocations.complete(now, *head, OutcomeKind::kStartFailed, Duration(0), out);
}

}  // namespace fairlead
