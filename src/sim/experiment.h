// Many runs at once: every variant of a scenario under every seed, on all cores. The result does not depend on how many
// there are.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/result.h"
#include "sim/scenario.h"

namespace fairlead::sim {

struct Variant {
  std::string label;  // what distinguishes it: "mqfq-sticky", "pool.instances=8"
  Scenario scenario;
};

// All combinations of policies and values of one setting (`sweep_key` empty: none). Fails on the first that is not valid.
Result<std::vector<Variant>> variants(Scenario scenario, const std::vector<std::string>& policies,
                                      const std::string& sweep_key, const std::vector<std::string>& sweep_values);

struct Outcomes {
  std::string label;
  Scenario scenario;
  std::vector<RunResult> runs;  // by seed
  RunResult total;
};

// `progress`: called on one of the working threads, never at the same time, with the part of all work that is done.
// `threads`: 0 for as many as there are cores.
std::vector<Outcomes> run_all(const std::vector<Variant>& variants, unsigned threads,
                              const std::function<void(double)>& progress);

}  // namespace fairlead::sim
