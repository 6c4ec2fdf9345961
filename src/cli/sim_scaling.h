// `fairlead sim scaling`: packers, scalers and profilers on modelled devices, side by side.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

// `sim`: the command it belongs to.
void add_sim_scaling(Cli& cli, CLI::App& sim);

}  // namespace fairlead::cli
