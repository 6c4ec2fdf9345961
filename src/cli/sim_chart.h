// `fairlead sim chart`: a chart as SVG, from JSON on standard input. What documents need, of the same hand as reports.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

// `sim`: the command it belongs to.
void add_sim_chart(Cli& cli, CLI::App& sim);

}  // namespace fairlead::cli
