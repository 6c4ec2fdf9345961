// fairlead usage: what tenants used (docs/how-to/usage.md).
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

void add_usage(Cli& cli);

}  // namespace fairlead::cli
