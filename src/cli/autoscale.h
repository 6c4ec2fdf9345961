// `fairlead autoscale`: functions that the node scales.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

void add_autoscale(Cli& cli);

}  // namespace fairlead::cli
