// Runs side by side, simulated or real: the table and the JSON that `sim` and `replay` share, so that one can be laid
// beside the other.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/experiment.h"

namespace fairlead::cli {

std::string run_table(const std::vector<sim::Outcomes>& outcomes);
nlohmann::ordered_json run_json(const sim::Outcomes& outcome);
// Adds each seed's own: mean, p99, gap, starts, and of each function its mean and deviation, in the order of "functions".
void add_seeds(const sim::Outcomes& outcome, nlohmann::ordered_json& run);
// Adds the first seed over time: GPU seconds served by function at some hundred moments, and the gap of each window.
void add_samples(const sim::Outcomes& outcome, nlohmann::ordered_json& run);

}  // namespace fairlead::cli
