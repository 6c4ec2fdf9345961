// Settings of the scheduler that belong together: the node's, which are what `fairlead serve` does without flags, and those
// of the MQFQ-Sticky paper. A preset leaves alone what belongs to the machine and the workload (devices, pool size, slots).
#pragma once

#include <string_view>

#include "base/result.h"
#include "sim/scenario.h"

namespace fairlead::sim {

enum class Preset {
  kNode,   // the default policy; eviction by cost, no cold duplicates, four starts ahead
  kPaper,  // MQFQ-Sticky; instances of inactive flows go first, and a cold start holds its slot
};

Result<Preset> preset_named(std::string_view name);  // "node", "paper"; kInvalidArgument lists them

// Overwrites the policy and its options (but for `by_tenant` and the random seed), starts, duplicates, memory and eviction.
void apply(Preset preset, Scenario& scenario);

}  // namespace fairlead::sim
