// `fairlead sim shares`: schedulers of places on a modelled device, side by side.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

// `sim`: the command it belongs to.
void add_sim_shares(Cli& cli, CLI::App& sim);

}  // namespace fairlead::cli
