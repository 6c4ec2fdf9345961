#include "sim/preset.h"

#include "decide/queueing/window.h"
#include "node/serve_options.h"

namespace fairlead::sim {
Result<Preset> preset_named(std::string_view name) {
  if (name == "node") return Preset::kNode;
  if (name == "paper") return Preset::kPaper;
  return fail(Errc::kInvalidArgument, "preset is \"{}\", it must be node or paper", name);
}

namespace {

// Of the machine it leaves out what must not depend on it: a simulated node has as many starts as the largest real one.
void apply_node(Scenario& scenario) {
  const ServeOptions node;
  scenario.policy = node.policy;
  scenario.policy_options.set(kOverRun, from_seconds(node.over_run_seconds));
  scenario.policy_options.ttl_factor = node.ttl_factor;
  scenario.core.memory_policy = node.memory_policy;
  scenario.core.eviction = node.eviction;
  scenario.core.starts_per_gpu = kMostDefaultStarts;
  scenario.core.no_cold_duplicates = !node.cold_duplicates;
}

void apply_paper(Scenario& scenario) {
  scenario.policy = "mqfq-sticky";
  scenario.core.memory_policy = MemoryPolicy::kPrefetchSwap;
  scenario.core.eviction = EvictionKind::kInactiveFirst;
  scenario.core.starts_per_gpu = 0;
  scenario.core.no_cold_duplicates = false;
}

}  // namespace

void apply(Preset preset, Scenario& scenario) {
  PolicyOptions options;  // the paper's
  options.by_tenant = scenario.policy_options.by_tenant;
  options.seed = scenario.policy_options.seed;
  scenario.policy_options = options;
  preset == Preset::kNode ? apply_node(scenario) : apply_paper(scenario);
}

}  // namespace fairlead::sim
