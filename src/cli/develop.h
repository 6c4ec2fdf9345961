// `fairlead new` and `fairlead dev`.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

void add_new(Cli& cli);
void add_dev(Cli& cli);

}  // namespace fairlead::cli
