#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

void add_manual(Cli& cli);  // hidden: packages are made with it

}  // namespace fairlead::cli
