#include <ostream>

#include "cli/commands.h"

namespace fairlead::cli {
namespace {

int run_remove(Cli& cli, const std::vector<std::string>& names) {
  int worst = kOk;
  for (const std::string& name : names) {
    Result<Json> answer = cli.node().call("DELETE", function_path(name));
    if (!answer) {
      worst = cli.report(answer.error());
      continue;
    }
    if (cli.json())
      cli.out() << Json{{"removed", name}}.dump() << "\n";
    else
      cli.out() << "removed " << name << "\n";
  }
  return worst;
}

}  // namespace

void add_remove(Cli& cli) {
  auto names = std::make_shared<std::vector<std::string>>();
  CLI::App& command =
      cli.add_command("remove", "Remove functions; what waits in their queues is answered with an error",
                      [&cli, names] { return run_remove(cli, *names); });
  command.alias("rm");
  command.add_option("NAME", *names, "Functions")->required();
}

}  // namespace fairlead::cli
