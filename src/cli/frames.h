// `fairlead frames`: who put kernels on each device when.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

void add_frames(Cli& cli);

}  // namespace fairlead::cli
