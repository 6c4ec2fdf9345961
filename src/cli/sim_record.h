// `fairlead sim record`: what happened on a node, as files that `fairlead sim` runs and `fairlead replay` sends.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

// `sim`: the command it belongs to.
void add_sim_record(Cli& cli, CLI::App& sim);

}  // namespace fairlead::cli
