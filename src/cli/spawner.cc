#include "runtime/spawner.h"

#include <memory>

#include "base/log.h"
#include "cli/commands.h"

namespace fairlead::cli {
namespace {

int run_spawner(Cli& cli, const std::vector<std::string>& arguments) {
  const Result<SpawnerOptions> options = spawner_options_of(arguments);
  if (!options) return cli.report(options.error());
  init_log("info");
  run_launched_spawner(*options);
}

}  // namespace

void add_spawner(Cli& cli) {
  const auto arguments = std::make_shared<std::vector<std::string>>();
  CLI::App& command = cli.add_command(kSpawnerCommand, "Make sandboxes for the node that started it",
                                      [&cli, arguments] { return run_spawner(cli, *arguments); });
  command.group("");  // not in the help
  command.add_option("OPTIONS", *arguments)->required();
}

}  // namespace fairlead::cli
