// Versions and aliases of functions on the command line: fairlead version publish|list|delete, fairlead alias set|list|delete|rollback.
#pragma once

#include "cli/cli.h"

namespace fairlead::cli {

void add_published_versions(Cli& cli, CLI::App& version);  // below `fairlead version`
void add_alias(Cli& cli);

}  // namespace fairlead::cli
