#include "sim/pipelines/goodput.h"

#include <algorithm>
#include <set>

#include "decide/pipeline/mig_geometry.h"

namespace fairlead::sim {
namespace {

Goodput goodput_on(const PipelineModel& model, const std::vector<int>& free, const Planner& planner,
                   const GoodputOptions& options) {
  const Duration objective = model.dag().objective;
  const bool is_blind = options.planner == "cv";
  const PlanAnswer answer =
      planner.fill(model, {.free = free, .objective = is_blind ? Duration(0) : objective, .steps = options.steps});
  Goodput found{.bound_per_s = fluid_bound(model, free)};
  int compute = 0, all = 0, late = 0;
  for (const PipelinePlan& plan : answer.plans) {
    compute += plan.compute;
    const bool in_time = objective == Duration(0) || plan.latency <= objective;
    if (in_time) found.rate_per_s += plan.rate_per_s;
    if (!in_time) ++late;
  }
  for (std::size_t type = 0; type < free.size(); ++type) all += free[type] * model.types()[type].compute;
  found.compute_part = all == 0 ? 0 : static_cast<double>(compute) / all;
  found.late_part = answer.plans.empty() ? 0 : static_cast<double>(late) / static_cast<double>(answer.plans.size());
  return found;
}

// Slices of `gpus` GPUs for each different configuration of one.
std::vector<std::vector<int>> configurations(int gpus) {
  const MigGeometry& geometry = **mig_geometry("a100-80");
  std::set<std::vector<int>> all;
  const auto may = [](const MigProfile& one) { return one.type.name != "1g2x" && one.type.name != "7g"; };
  for (const auto& set : maximal_placements(geometry, {}, may)) {
    std::vector<int> counts(4);  // paper_types(): 1g, 2g, 3g, 4g
    for (const MigPlacement& one : set) {
      const int compute = geometry.profiles[one.profile].type.compute;
      counts[static_cast<std::size_t>(compute) - 1] += gpus;
    }
    all.insert(counts);
  }
  return {all.begin(), all.end()};
}

}  // namespace

Result<Goodput> goodput(const Application& application, const GoodputOptions& options) {
  const auto planner = planner_named(options.planner);
  if (!planner) return fail(planner.error());
  const auto gpus = partition_named(options.partition, options.gpus);
  if (!gpus) return fail(gpus.error());
  const PipelineModel model(application.dag, paper_types(), options.hop);
  Goodput best = goodput_on(model, all_slices(*gpus), **planner, options);
  if (!options.recut) return best;
  for (const auto& free : configurations(options.gpus)) {
    const Goodput found = goodput_on(model, free, **planner, options);
    if (found.rate_per_s > best.rate_per_s) best = found;
  }
  return best;
}

}  // namespace fairlead::sim
