#include "decide/core/dispatchable.h"

#include <algorithm>
#include <iterator>

#include "decide/core/flow_news.h"

namespace fairlead {

// Where instances do not start ahead, the dispatch does the start itself.
bool Dispatchable::may_begin_with_a_start(FlowId flow) const {
  return !starts_ahead(tables_) && planner_.may_have_more(flow) && planner_.held_back_on(flow).empty() &&
         !is_patient(flow);
}

bool Dispatchable::is_patient(FlowId flow) const {
  const auto until = planner_.worth_waiting_until(flow);
  if (until) answers_.note_patience(*until);
  return until.has_value();
}

void Dispatchable::note_start(FlowId flow, Obstacle obstacle) const {
  answers_.note_start(obstacle);
  if (obstacle == Obstacle::kItself) is_patient(flow);
}

bool Dispatchable::can_run_on(FlowId flow, GpuId only) const {
  const Bytes expected = residency_.expected(flow);
  if (placer_.has_warm(tables_.pool, flow, expected, only)) return true;
  return may_begin_with_a_start(flow) && placer_.can_place(tables_.pool, flow, expected, only);
}

bool Dispatchable::can_run(FlowId flow) const {
  const bool can = can_run_on(flow, GpuId());
  answers_.note_run(flow, can ? Obstacle::kNothing : obstacle_to_run(flow));
  return can;
}

Obstacle Dispatchable::obstacle(FlowId flow) const {
  return can_run_on(flow, GpuId()) ? Obstacle::kNothing : obstacle_to_run(flow);
}

// Of a flow that cannot run.
Obstacle Dispatchable::obstacle_to_run(FlowId flow) const {
  if (may_begin_with_a_start(flow)) return Obstacle::kMemory;
  return placer_.obstacle(tables_.pool, flow, residency_.expected(flow));
}

std::vector<Placeable::Place> Dispatchable::places(FlowId flow) const {
  std::vector<Place> places;
  for (const Gpu* gpu : tables_.pool.gpus()) {
    if (gpu->serves) places.push_back(*place(flow, gpu->id));
  }
  const bool can = std::any_of(places.begin(), places.end(), [](const Place& place) { return place.free; });
  answers_.note_run(flow, can ? Obstacle::kNothing : obstacle_to_run(flow));
  return places;
}

std::optional<Placeable::Place> Dispatchable::place(FlowId flow, GpuId id) const {
  const Gpu& gpu = tables_.pool.gpu(id);
  if (!gpu.serves) return std::nullopt;
  const Instance* warm = placer_.warm_instance(tables_.pool, flow, residency_.expected(flow), id);
  return Place{.gpu = id,
               .setup = setup_on(tables_, flow, id),
               .running = gpu.slots_in_use,
               .free = warm != nullptr || can_run_on(flow, id),
               .evicts = warm != nullptr && tables_.pool.task_room().evicts(warm->id)};
}

std::vector<GpuId> Dispatchable::free_gpus() const {
  std::vector<const Gpu*> free;
  const auto& all = tables_.pool.gpus();
  std::copy_if(all.begin(), all.end(), std::back_inserter(free), [](const Gpu* gpu) { return gpu->has_turn(); });
  std::stable_sort(free.begin(), free.end(),
                   [](const Gpu* a, const Gpu* b) { return a->slots_in_use < b->slots_in_use; });
  std::vector<GpuId> ids;
  for (const Gpu* gpu : free) ids.push_back(gpu->id);
  return ids;
}

}  // namespace fairlead
