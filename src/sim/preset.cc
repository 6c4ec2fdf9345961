#include "sim/preset.h"

#include "queueing/window.h"

namespace fairlead::sim {
namespace {

// `fairlead serve` allows as many as it has cores, at most four; a simulated run must not depend on its machine.
constexpr std::size_t kNodeStarts = 4;

// The paper's T is 10 s. With 8 s the mean is the same and the worst gap of service three quarters of it (docs/ablation.md).
constexpr Duration kNodeOverRun = std::chrono::seconds(8);

}  // namespace

Result<Preset> preset_named(std::string_view name) {
  if (name == "node") return Preset::kNode;
  if (name == "paper") return Preset::kPaper;
  return fail(Errc::kInvalidArgument, "preset is \"{}\", it must be node or paper", name);
}

void apply(Preset preset, Scenario& scenario) {
  const bool is_node = preset == Preset::kNode;
  PolicyOptions options;  // the paper's; alpha is the node's as well
  if (is_node) options.set(kOverRun, kNodeOverRun);
  options.by_tenant = scenario.policy_options.by_tenant;
  options.seed = scenario.policy_options.seed;
  scenario.policy_options = options;
  scenario.policy = is_node ? std::string(policy_names().front()) : "mqfq-sticky";
  scenario.core.memory_policy = MemoryPolicy::kPrefetchSwap;
  scenario.core.eviction = is_node ? EvictionKind::kCost : EvictionKind::kInactiveFirst;
  scenario.core.starts_per_gpu = is_node ? kNodeStarts : 0;
  scenario.core.no_cold_duplicates = is_node;
}

}  // namespace fairlead::sim
