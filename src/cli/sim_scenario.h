// Which scenario a word on the command line means.
#pragma once

#include <string>

#include "cli/cli.h"
#include "sim/scenario.h"

namespace fairlead::cli {

// A built-in name means the built-in scenario, whatever lies in the working folder: results must not depend on that. What is
// there under such a name is said as ./NAME, and standard error says so. Anything else is a scenario file.
// kNotFound: neither built in nor a file.
Result<sim::Scenario> named_scenario(Cli& cli, const std::string& name);

}  // namespace fairlead::cli
