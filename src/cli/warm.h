// `fairlead warm` and `fairlead unload`.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

void add_warm(Cli& cli);
void add_unload(Cli& cli);

}  // namespace fairlead::cli
