#include <ostream>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

int run_dead_letters(Cli& cli, const std::string& function) {
  const std::string query = function.empty() ? "" : "?function=" + net::percent_encode(function);
  Result<Json> answer = cli.node().call("GET", "/fairlead/v1/dead-letters" + query);
  if (!answer) return cli.report(answer.error());
  if (cli.json()) {
    cli.out() << answer->dump(2) << "\n";
    return kOk;
  }
  const Json letters = answer->value("dead_letters", Json::array());
  if (letters.empty()) {
    cli.err() << "no dead letters: every accepted event has succeeded or still waits\n";
    return kOk;
  }
  Table table({{"FAILED"}, {"FUNCTION"}, {"REQUEST"}, {"TRIES", Table::Align::kRight}, {"ERROR"}});
  for (const Json& letter : letters) {
    table.add_row({format_time(letter.value("failed_ms", std::int64_t{0})), letter.value("function", ""),
                   letter.value("request_id", ""), std::to_string(letter.value("attempts", 0)),
                   letter.value("error_type", "") + ": " + letter.value("error_message", "").substr(0, 100)});
  }
  cli.out() << table.text();
  return kOk;
}

// A request moves as many as fit; so many requests as it takes.
int run_redrive(Cli& cli, const std::string& function, bool all) {
  if (function.empty() != all) {
    return cli.report({Errc::kInvalidArgument, "give the NAME of a function, or --all for those of all functions"});
  }
  const std::string whose = all ? "" : "/functions/" + net::percent_encode(function);
  std::size_t redriven = 0;
  while (true) {
    const Result<Json> answer = cli.node().call("POST", "/fairlead/v1" + whose + "/dead-letters/redrive");
    if (!answer) {
      if (redriven > 0) cli.err() << redriven << " dead letters will be tried again; then:\n";
      return cli.report(answer.error());
    }
    const std::size_t now = answer->value("redriven", std::size_t{0});
    redriven += now;
    if (now == 0 || answer->value("left", std::size_t{0}) == 0) break;
  }
  if (cli.json()) {
    cli.out() << Json{{"redriven", redriven}}.dump() << "\n";
  } else {
    cli.out() << redriven << (redriven == 1 ? " dead letter" : " dead letters") << " will be tried again\n";
  }
  return kOk;
}

}  // namespace

void add_dead_letters(Cli& cli) {
  auto function = std::make_shared<std::string>();
  const auto all = std::make_shared<bool>(false);
  CLI::App& list =
      cli.add_command("dead-letters", "List asynchronous invocations that failed for good, the newest first",
                      [&cli, function] { return run_dead_letters(cli, *function); });
  list.add_option("NAME", *function, "Only those of this function");
  CLI::App& redrive = cli.add_command(list, "redrive", "Try them again, as if they had just been accepted",
                                      [&cli, function, all] { return run_redrive(cli, *function, *all); });
  redrive.add_option("NAME", *function, "Those of this function");
  redrive.add_flag("--all", *all, "Those of all functions");
}

}  // namespace fairlead::cli
