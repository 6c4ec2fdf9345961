#include "runtime/jail/jail.h"

#include <memory>

#include "cli/commands.h"

namespace fairlead::cli {
namespace {

int run(Cli& cli, const std::string& text, const std::vector<std::string>& program) {
  const auto spec = decode_jail_spec(text);
  if (!spec) return cli.report(spec.error());
  return run_jail(*spec, program);
}

}  // namespace

void add_jail(Cli& cli) {
  auto spec = std::make_shared<std::string>();
  auto program = std::make_shared<std::vector<std::string>>();
  CLI::App& command = cli.add_command("jail", "Run a program in a jail for the node that started it",
                                      [&cli, spec, program] { return run(cli, *spec, *program); });
  command.group("");  // not in the help
  command.add_option("--spec", *spec, "What the jail has")->required();
  command.add_option("program", *program, "The program and its arguments")->required();
  command.positionals_at_end();
}

}  // namespace fairlead::cli
