#include <ostream>

#include "cli/commands.h"

namespace fairlead::cli {

void add_version(Cli& cli) {
  cli.add_command("version", "Print the version", [&cli]() -> int {
    if (cli.json())
      cli.out() << Json{{"version", FAIRLEAD_VERSION}}.dump() << "\n";
    else
      cli.out() << "fairlead " << FAIRLEAD_VERSION << "\n";
    return kOk;
  });
}

}  // namespace fairlead::cli
