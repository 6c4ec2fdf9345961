#include "decide/core/flow_news.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fairlead {

// Nothing where a spare instance has all it needs on the device, the reload of the quickest one otherwise, and a cold start where
// none is spare.
void FlowNews::note_setup(FlowId flow) {
  CoreFunction* function = tables_.functions.find(flow);
  if (function == nullptr) return;
  std::optional<Duration> quickest;
  for (const Instance* instance : tables_.pool.of_flow(flow)) {
    if (!instance->spare() || instance->terms.is_entitled) continue;
    quickest = std::min(quickest.value_or(instance->reload), instance->reload);
  }
  if (function->keeps_data) note_places(flow, *function);
  const Duration setup = quickest.value_or(function->cold_start.or_nothing());
  if (setup == function->told_setup) return;
  function->told_setup = setup;
  tables_.queue->set_setup(flow, setup);
}

// The same GPU by GPU, for functions whose data stays there: what is there is there, whoever waits for it.
void FlowNews::note_places(FlowId flow, CoreFunction& function) {
  std::map<GpuId, Duration> places;
  for (const Instance* instance : tables_.pool.of_flow(flow)) {
    if (instance->life.starts() || instance->life.retires()) continue;
    const auto [place, first] = places.try_emplace(instance->gpu, instance->reload);
    if (!first) place->second = std::min(place->second, instance->reload);
  }
  for (const auto& [gpu, setup] : function.told_places) {
    if (!places.contains(gpu)) tables_.queue->set_setup_on(flow, gpu, std::nullopt);
  }
  for (const auto& [gpu, setup] : places) {
    const auto told = function.told_places.find(gpu);
    if (told == function.told_places.end() || told->second != setup) tables_.queue->set_setup_on(flow, gpu, setup);
  }
  function.told_places = std::move(places);
}

void FlowNews::note_supply(FlowId flow) {
  CoreFunction* function = tables_.functions.find(flow);
  if (function == nullptr) return;
  const bool only_seats = runs_in_seats_alone(tables_, function->spec), ahead = starts_ahead(tables_);
  if (!ahead && !only_seats && function->told_supply != Supply::kSeats) return;
  Supply supply = only_seats ? Supply::kSeats : ahead ? Supply::kNone : Supply::kReady;
  for (const Instance* instance : tables_.pool.of_flow(flow)) {
    if (only_seats) break;
    if (instance->life.retires() || instance->terms.is_entitled) continue;
    if (!instance->starts_ahead()) supply = Supply::kReady;
    if (supply == Supply::kNone) supply = Supply::kStarting;
  }
  if (supply == function->told_supply) return;
  function->told_supply = supply;
  tables_.queue->set_supply(flow, supply);
}

Duration setup_on(const CoreTables& tables, FlowId flow, GpuId gpu) {
  constexpr Duration kUnknownStart = std::chrono::milliseconds(1);
  std::optional<Duration> quickest;
  for (const Instance* instance : tables.pool.of_flow(flow)) {
    if (instance->gpu != gpu || instance->life.starts() || instance->life.retires()) continue;
    quickest = std::min(quickest.value_or(instance->reload), instance->reload);
  }
  if (quickest) return *quickest;
  const CoreFunction* function = tables.functions.find(flow);
  if (function == nullptr) return kUnknownStart;
  const auto here = function->slice_times.start_on(tables.slices.of(gpu));
  const Duration cold_start = here.value_or(function->cold_start.or_nothing());
  return std::max(cold_start, kUnknownStart);
}

bool runs_in_seats_alone(const CoreTables& tables, const FlowSpec& spec) {
  if (spec.request_percent == 0 || !spec.most_instances || *spec.most_instances > spec.seats.size()) return false;
  const std::vector<Instance*>& all = tables.pool.of_flow(spec.flow);
  return std::any_of(all.begin(), all.end(),
                     [](const Instance* i) { return i->terms.is_entitled && !i->life.retires() && i->on->serves; });
}

}  // namespace fairlead
