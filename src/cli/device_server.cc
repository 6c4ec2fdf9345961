#include "runtime/device_server/device_server.h"

#include <memory>

#include "cli/commands.h"
#include "cli/setting_options.h"
#include "runtime/device_server/command_line.h"
#include "runtime/device_server/module_trial.h"

namespace fairlead::cli {
namespace {

int run_device_server(Cli& cli, const CLI::App& command, bool only_tries) {
  const auto settled = settle(device_server_settings(), {given_settings(command, device_server_settings())});
  if (!settled) return cli.report(settled.error());
  return only_tries ? try_modules(settled->options) : device_server(settled->options);
}

}  // namespace

void add_device_server(Cli& cli) {
  auto only_tries = std::make_shared<bool>(false);
  auto self = std::make_shared<const CLI::App*>();
  CLI::App& command = cli.add_command("device-server", "Run kernel tasks for the node that started it",
                                      [&cli, self, only_tries] { return run_device_server(cli, **self, *only_tries); });
  *self = &command;
  command.group("");  // not in the help
  add_settings(command, device_server_settings());
  command.add_flag(kTryModules, *only_tries, "Only load the modules that the node sends, and end");
}

}  // namespace fairlead::cli
