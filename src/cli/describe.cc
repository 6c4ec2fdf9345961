#include <ostream>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

std::string joined(const Json& map) {
  std::string text;
  for (const auto& [key, value] : map.items()) {
    text += (text.empty() ? "" : ", ") + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text.empty() ? "-" : text;
}

std::string description_of(const Json& function) {
  const Json configuration = function.value("Configuration", Json::object());
  const Json environment = configuration.value("Environment", Json::object()).value("Variables", Json::object());
  const Json concurrency = function.value("Concurrency", Json::object());
  Table table({{"", {}}, {"", {}}});
  auto row = [&](const std::string& name, const std::string& value) { table.add_row({name, value}); };
  row("Name", configuration.value("FunctionName", ""));
  row("State", configuration.value("State", "-"));
  row("Description", configuration.value("Description", ""));
  row("Handler", configuration.value("Handler", ""));
  row("Memory", fmt::format("{} MiB", configuration.value("MemorySize", 0)));
  row("Timeout", fmt::format("{} s", configuration.value("Timeout", 0)));
  row("Environment", joined(environment));
  row("Tags", joined(function.value("Tags", Json::object())));
  row("Reserved", concurrency.contains("ReservedConcurrentExecutions")
                      ? concurrency["ReservedConcurrentExecutions"].dump() + " concurrent executions"
                      : "-");
  row("Code", format_bytes(configuration.value("CodeSize", 0.0)) + ", sha256 " + configuration.value("CodeSha256", ""));
  row("Modified", configuration.value("LastModified", ""));
  row("Revision", configuration.value("RevisionId", ""));
  row("ARN", configuration.value("FunctionArn", ""));
  return table.text().substr(1);  // without the empty heading
}

int run_describe(Cli& cli, const std::string& name) {
  Result<Json> function = cli.node().call("GET", function_path(name));
  if (!function) return cli.report(function.error());
  cli.out() << (cli.json() ? function->dump(2) + "\n" : description_of(*function));
  return kOk;
}

}  // namespace

void add_describe(Cli& cli) {
  auto name = std::make_shared<std::string>();
  cli.add_command("describe", "Show one function's configuration", [&cli, name] { return run_describe(cli, *name); })
      .add_option("NAME", *name, "Function")
      ->required();
}

}  // namespace fairlead::cli
