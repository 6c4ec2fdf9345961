// `fairlead sim ktask`: kernel tasks on modelled GPUs, systems side by side.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

// `sim`: the command it belongs to.
void add_sim_ktask(Cli& cli, CLI::App& sim);

}  // namespace fairlead::cli
