#include "decide/core/start_planner.h"

#include <algorithm>

namespace fairlead {
namespace {

class NobodyYields final : public Yielding {
 public:
  bool may_go(const Gpu&) const override { return false; }
  bool may_go(const Instance&) const override { return false; }
};

}  // namespace

bool StartPlanner::may_start() const {
  const auto& gpus = tables_.pool.gpus();
  return std::any_of(gpus.begin(), gpus.end(), [this](const Gpu* gpu) {
    return gpu->serves && gpu->starting_ahead < tables_.options.starts_per_gpu;
  });
}

std::optional<Placement> StartPlanner::place_prepared(FlowId flow) const {
  if (!tables_.pool.of_flow(flow).empty()) return std::nullopt;
  const Placer::StartAhead start{.flow = flow,
                                 .expected = residency_.expected(flow),
                                 .at_once = tables_.options.starts_per_gpu,
                                 .is_session = tables_.functions.at(flow).spec.is_kernel_task};
  const auto placement = placer_.place_start(tables_.pool, start, NobodyYields());
  return placement && placement->evict.empty() ? placement : std::nullopt;
}

// The next instance that the flow should have, wherever it fits. Empty: it needs none.
std::optional<Placer::StartAhead> StartPlanner::wanted(FlowId flow) const {
  const std::vector<Instance*>& instances = tables_.pool.of_flow(flow);
  const bool is_first =
      std::all_of(instances.begin(), instances.end(), [](const Instance* i) { return i->life.retires(); });
  if (!may_have_more(flow) || (!is_first && !worth_a_duplicate(flow))) return std::nullopt;
  return Placer::StartAhead{.flow = flow,
                            .expected = residency_.expected(flow),
                            .at_once = tables_.options.starts_per_gpu,
                            .is_session = tables_.functions.at(flow).spec.is_kernel_task,
                            .only_where_a_slot_idles = !is_first,
                            .not_on = held_back_on(flow)};
}

// Of its instances those that go are none any more.
bool StartPlanner::may_have_more(FlowId flow) const {
  const auto& most = tables_.functions.at(flow).spec.most_instances;
  if (!most) return true;
  const std::vector<Instance*>& all = tables_.pool.of_flow(flow);
  const auto goes = std::count_if(all.begin(), all.end(), [](const Instance* i) { return i->life.retires(); });
  return all.size() - static_cast<std::size_t>(goes) < *most;
}

std::optional<Placement> StartPlanner::place(FlowId flow) const {
  const auto start = wanted(flow);
  return start ? placer_.place_start(tables_.pool, *start, *this) : std::nullopt;
}

Obstacle StartPlanner::obstacle(FlowId flow) const {
  const auto start = wanted(flow);
  if (!start) return Obstacle::kItself;
  return placer_.can_start(tables_.pool, *start, *this) ? Obstacle::kNothing : placer_.obstacle(tables_.pool, *start);
}

// A ready instance of the flow could take a slot there, and was not chosen: its data's turn has not come, there is no memory beside
// what runs, or another loads. Another instance there would wait for the same.
std::vector<GpuId> StartPlanner::held_back_on(FlowId flow) const {
  std::vector<GpuId> held_back;
  if (!tables_.functions.at(flow).keeps_data) return held_back;
  for (const Instance* instance : tables_.pool.of_flow(flow)) {
    if (!instance->spare() || instance->terms.is_entitled) continue;
    if (instance->on->takes(*instance) || instance->reload > Duration(0)) held_back.push_back(instance->gpu);
  }
  return held_back;
}

// One more instance helps only where a slot idles, and no more of them than slots idle. (An instance that is ready and
// could have taken such a slot has taken it already.)
bool StartPlanner::worth_a_duplicate(FlowId flow) const {
  if (!tables_.pool.has_turn()) return false;
  const std::vector<Instance*>& instances = tables_.pool.of_flow(flow);
  const auto coming = static_cast<std::size_t>(
      std::count_if(instances.begin(), instances.end(), [](const Instance* i) { return i->starts_ahead(); }));
  const FlowView view = tables_.queue->view(flow);
  const FlowSpec& spec = tables_.functions.at(flow).spec;
  if (coming >= std::min(free_turns(tables_.pool, spec.is_kernel_task), view.queued)) return false;
  const auto limit = spec.max_concurrency;
  return (!limit || view.in_flight + coming < *limit) && !worth_waiting(flow);
}

// Not once as many instances as the GPU has slots start, or are ready for work that waits within the window and have served
// none.
bool StartPlanner::may_go(const Gpu& gpu) const {
  std::size_t next = gpu.starting_ahead;
  for (const Instance* instance : gpu.instances) {
    if (next >= gpu.capacity.slots) return false;
    if (!instance->life.unused()) continue;
    if (tables_.queue->queued(instance->flow) > 0 && is_active(tables_, instance->flow)) ++next;
  }
  return next < gpu.capacity.slots;
}

// One that became ready for work that still waits would have been started for nothing, and two flows could start in each
// other's place for ever.
bool StartPlanner::may_go(const Instance& instance) const {
  return !instance.life.unused() || tables_.queue->queued(instance.flow) == 0;
}

Duration StartPlanner::expected_start(FlowId flow) const {
  const CoreFunction* function = tables_.functions.find(flow);
  if (function != nullptr && function->cold_start.known()) return *function->cold_start.known();
  Duration longest(0);
  for (const Instance* instance : tables_.pool.of_flow(flow)) {
    if (instance->life.starts()) longest = std::max(longest, tables_.latest - instance->last_used);
  }
  return longest;
}

// No cold duplicate: while the instances that a flow has are expected to serve all that it has queued before a new one
// could be ready, a new one would only take a slot, memory and somebody's place. An instance that is long overdue counts
// no more.
//
// A flow none of whose starts has ended is expected to take at least as long as the one that goes on has taken: a second start
// would end later still.
//
// Example: a start takes 9 s, a run 2 s, and one runs since 0.5 s. With three queued the instance is done with them in
// 1.5 + 2 x 2 = 5.5 s, before a second would be ready; with six, in 11.5 s: a second one is started. After 11 s of a run
// that should have taken 2 s one is started in any case.
std::optional<Instant> StartPlanner::worth_waiting_until(FlowId flow) const {
  if (!tables_.options.no_cold_duplicates) return std::nullopt;
  const FlowView view = tables_.queue->view(flow);
  const Duration start = expected_start(flow);
  const CoreFunction* const function = tables_.functions.find(flow);
  Duration first_free = Duration::max(), runs(0);
  const auto run_on = [&](const Instance& instance) {
    const auto here =
        function == nullptr ? std::nullopt : function->slice_times.run_on(tables_.slices.of(instance.gpu));
    return here.value_or(view.service_estimate);
  };
  Instant until = Instant::max();
  Duration::rep useful = 0;
  for (const Instance* instance : tables_.pool.of_flow(flow)) {
    if (instance->spare() || instance->life.retires()) continue;
    const bool is_starting = instance->life.starts();
    const Duration run = run_on(*instance);
    const Duration expected = is_starting ? start + run : run;
    const Instant since = is_starting ? instance->last_used : tables_.invocations.at(instance->bound).since();
    const Duration elapsed = tables_.latest - since;
    if (elapsed > expected + start) continue;
    first_free = std::min(first_free, std::max(Duration(0), expected - elapsed));
    until = std::min(until, since + expected + start + Duration(1));
    runs += run;
    ++useful;
  }
  if (useful == 0) return std::nullopt;
  const auto behind = static_cast<Duration::rep>(view.queued > 0 ? view.queued - 1 : 0);
  if (first_free + behind * (runs / useful) / useful > start) return std::nullopt;
  constexpr Duration kSoonest =
      std::chrono::milliseconds(1);  // of one that has just begun, and nothing is known of how long it takes
  return std::max(until, tables_.latest + kSoonest);
}

}  // namespace fairlead
