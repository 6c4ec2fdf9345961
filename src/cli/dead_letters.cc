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

}  // namespace

void add_dead_letters(Cli& cli) {
  auto function = std::make_shared<std::string>();
  cli.add_command("dead-letters", "List asynchronous invocations that failed for good, the newest first",
                  [&cli, function] { return run_dead_letters(cli, *function); })
      .add_option("NAME", *function, "Only those of this function");
}

}  // namespace fairlead::cli
