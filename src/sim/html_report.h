// An experiment as one HTML page without scripts or anything to fetch: a table, latency distributions, service and queues
// over time, what was cold, who ran when.
#pragma once

#include <string>
#include <vector>

#include "sim/experiment.h"

namespace fairlead::sim {

std::string html_report(const std::string& title, const std::vector<Outcomes>& outcomes);

}  // namespace fairlead::sim
