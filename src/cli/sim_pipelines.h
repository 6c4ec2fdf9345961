// `fairlead sim pipelines`: functions of several models on modelled MIG slices, planners and orders side by side.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

// `sim`: the command it belongs to.
void add_sim_pipelines(Cli& cli, CLI::App& sim);

}  // namespace fairlead::cli
