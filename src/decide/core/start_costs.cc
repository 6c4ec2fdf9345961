// What it costs to begin: learnt cold starts, what a flow's next invocation would have to wait for, and whether a second
// instance is worth its start.
#include <algorithm>

#include "decide/core/state.h"

namespace fairlead {

void Core::State::learn_cold_start(FlowId flow, Duration took) {
  Function* function = functions.find(flow);
  if (function == nullptr) return;
  const Duration mean = function->cold_start.value_or(took);
  function->cold_start = mean + (took - mean) / 10;
}

Duration Core::State::cold_start(FlowId flow) const {
  const Function* function = functions.find(flow);
  return function == nullptr ? Duration(0) : function->cold_start.value_or(Duration(0));
}

Duration Core::State::expected_start(FlowId flow) const {
  const Function* function = functions.find(flow);
  if (function != nullptr && function->cold_start) return *function->cold_start;
  Duration longest(0);
  for (const Instance* instance : pool.of_flow(flow)) {
    if (instance->life.starts()) longest = std::max(longest, latest - instance->last_used);
  }
  return longest;
}

// What the next invocation waits for before it runs: nothing where a spare instance has all it needs on the device, the
// reload of the quickest one otherwise, and a cold start where none is spare. Tells the policy when it changes. Called
// where an instance of the flow comes, goes, takes or gives back its slot, or its reload changes.
void Core::State::note_setup(FlowId flow) {
  Function* function = functions.find(flow);
  if (function == nullptr) return;
  std::optional<Duration> quickest;
  for (const Instance* instance : pool.of_flow(flow)) {
    if (!instance->spare() || instance->terms.is_entitled) continue;
    quickest = std::min(quickest.value_or(instance->reload), instance->reload);
  }
  if (function->keeps_data) note_places(flow, *function);
  const Duration setup = quickest.value_or(function->cold_start.value_or(Duration(0)));
  if (setup == function->told_setup) return;
  function->told_setup = setup;
  policy->set_setup(flow, setup);
}

// The same GPU by GPU, for functions whose data stays there: what is there is there, whoever waits for it.
void Core::State::note_places(FlowId flow, Function& function) {
  std::map<GpuId, Duration> places;
  for (const Instance* instance : pool.of_flow(flow)) {
    if (instance->life.starts() || instance->life.retires()) continue;
    const auto [place, first] = places.try_emplace(instance->gpu, instance->reload);
    if (!first) place->second = std::min(place->second, instance->reload);
  }
  for (const auto& [gpu, setup] : function.told_places) {
    if (!places.contains(gpu)) policy->set_setup_on(flow, gpu, std::nullopt);
  }
  for (const auto& [gpu, setup] : places) {
    const auto told = function.told_places.find(gpu);
    if (told == function.told_places.end() || told->second != setup) policy->set_setup_on(flow, gpu, setup);
  }
  function.told_places = std::move(places);
}

// The same on one GPU, instances that are not spare included: what is there is there, whoever waits for it.
Duration Core::State::setup_on(FlowId flow, GpuId gpu) const {
  constexpr Duration kUnknownStart = std::chrono::milliseconds(1);
  std::optional<Duration> quickest;
  for (const Instance* instance : pool.of_flow(flow)) {
    if (instance->gpu != gpu || instance->life.starts() || instance->life.retires()) continue;
    quickest = std::min(quickest.value_or(instance->reload), instance->reload);
  }
  return quickest.value_or(std::max(cold_start(flow), kUnknownStart));
}

void Core::State::set_reload(InstanceId id, Duration reload) {
  Instance* instance = pool.find(id);
  if (instance == nullptr) return;
  if (Function* function = functions.find(instance->flow)) function->keeps_data = true;
  instance->reload = reload;
  note_setup(instance->flow);
}

// A program's memory that is away. Who has none of it on the device waits for the link, and others wait meanwhile: so it is
// worth serving all that such a flow has queued at once.
void Core::State::note_reload(Instance& instance, Duration reload) {
  if (reload == instance.reload) return;
  instance.reload = reload;
  note_setup(instance.flow);
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
bool Core::State::worth_waiting(FlowId flow) const {
  if (!options.no_cold_duplicates) return false;
  const FlowView view = policy->view(flow);
  const Duration start = expected_start(flow), run = view.service_estimate;
  Duration first_free = Duration::max();
  Duration::rep useful = 0;
  for (const Instance* instance : pool.of_flow(flow)) {
    if (instance->spare() || instance->life.retires()) continue;
    const bool is_starting = instance->life.starts();
    const Duration expected = is_starting ? start + run : run;
    const Duration elapsed = latest - (is_starting ? instance->last_used : invocations.at(instance->bound).since());
    if (elapsed > expected + start) continue;
    first_free = std::min(first_free, std::max(Duration(0), expected - elapsed));
    ++useful;
  }
  if (useful == 0) return false;
  const auto behind = static_cast<Duration::rep>(view.queued > 0 ? view.queued - 1 : 0);
  return first_free + behind * run / useful <= start;
}

}  // namespace fairlead
