// fairlead cluster: who is in it, how busy they are, and where functions are at home.
#include <memory>
#include <ostream>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

std::string seconds(const Json& object, const char* field) {
  return fmt::format("{:.2f}", object.value(field, 0.0));
}

void print_members(Cli& cli, const Json& answer) {
  Table table({{"NODE"}, {"STATE"}, {"SLOTS"}, {"BACKLOG s"}, {"FORWARDED"}, {"FAILED"}, {"ADDRESS"}});
  for (const Json& member : answer.value("members", Json::array())) {
    const std::string address = member.value("address", "");
    table.add_row(
        {member.value("name", ""), member.value("state", ""), fmt::format("{:.0f}", member.value("slots", 0.0)),
         seconds(member, "backlog_s"), std::to_string(member.value("forwarded", std::uint64_t{0})),
         std::to_string(member.value("failed", std::uint64_t{0})), address.empty() ? "(this node)" : address});
  }
  cli.out() << table.text();
  for (const Json& member : answer.value("members", Json::array())) {
    if (const std::string error = member.value("error", ""); !error.empty()) cli.out() << error << "\n";
  }
}

void print_functions(Cli& cli, const Json& answer) {
  Table table({{"FUNCTION"}, {"HOME"}, {"WHY"}});
  for (const Json& function : answer.value("functions", Json::array())) {
    const Json home = function.value("home", Json());
    table.add_row(
        {function.value("name", ""), home.is_string() ? home.get<std::string>() : "-", function.value("why", "")});
  }
  cli.out() << "\n" << table.text();
}

int run_status(Cli& cli) {
  const auto answer = cli.node().call("GET", "/fairlead/v1/cluster");
  if (!answer) {
    if (answer.error().code != Errc::kNotFound) return cli.report(answer.error());
    return cli.report({Errc::kNotFound, "this node is in no cluster: it was started without --cluster-key"});
  }
  if (!answer->is_object()) return cli.report({Errc::kCorrupt, "the node did not answer with an object"});
  if (cli.json()) {
    cli.out() << answer->dump(2) << "\n";
    return kOk;
  }
  print_members(cli, *answer);
  print_functions(cli, *answer);
  return kOk;
}

}  // namespace

void add_cluster(Cli& cli) {
  CLI::App& group = cli.add_group("cluster", "See the nodes that give each other calls");
  cli.add_command(group, "status", "Nodes, their states and loads; where each function's next call goes, and why",
                  [&cli] { return run_status(cli); });
}

}  // namespace fairlead::cli
