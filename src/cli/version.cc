#include "cli/version.h"

#include <ostream>

#include "cli/commands.h"
#include "cli/published.h"

namespace fairlead::cli {

std::string version_text() {
  const std::string commit = FAIRLEAD_COMMIT;
  return "fairlead " FAIRLEAD_VERSION + (commit.empty() ? "" : " (" + commit + ")");
}

void add_version(Cli& cli) {
  CLI::App& command =
      cli.add_command("version", "Print the version; publish, list, delete: those of a function", [&cli]() -> int {
        Json version{{"version", FAIRLEAD_VERSION}};
        if (*FAIRLEAD_COMMIT != '\0') version["commit"] = FAIRLEAD_COMMIT;
        cli.out() << (cli.json() ? version.dump() : version_text()) << "\n";
        return kOk;
      });
  add_published_versions(cli, command);
}

}  // namespace fairlead::cli
