// `fairlead sim cluster`: routings of calls over many nodes, side by side.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

// `sim`: the command it belongs to.
void add_sim_cluster(Cli& cli, CLI::App& sim);

}  // namespace fairlead::cli
