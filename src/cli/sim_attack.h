// `fairlead sim attack`: workloads that the node's scheduler serves worse than others do, searched for or given.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

// `sim`: the command it belongs to.
void add_sim_attack(Cli& cli, CLI::App& sim);

}  // namespace fairlead::cli
