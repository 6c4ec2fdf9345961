// Whether each of a pipeline's outputs comes for every request, whatever the conditions say: a document whose output may never come is refused before
// anybody calls it.
//
// Idea. The values that decide are few, so all of their 2^n worlds are walked: in each, who runs follows from the order. Components are bits.
//
// Example: "sr" runs where probe.is_low is true, and the output comes from sr.y: where probe.is_low is false, nothing comes.
//
// Pure. Determinism: of the Dag. Threads: any.
#pragma once

#include <optional>
#include <string>

#include "decide/pipeline/dag.h"

namespace fairlead {

inline constexpr std::size_t kMaxDeciders = 12;  // different values that conditions look at

// What is wrong, for people, with the output and the world, or with the number of deciders. Empty: every output comes. REQUIRES: check_dag(dag)
// finds nothing.
std::optional<std::string> what_may_not_come(const Dag& dag);

}  // namespace fairlead
