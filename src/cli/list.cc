#include <ostream>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

// Every page of the list.
Result<Json> all_functions(NodeClient& node) {
  Json functions = Json::array();
  std::string marker;
  do {
    const std::string query = marker.empty() ? "" : "?Marker=" + net::percent_encode(marker);
    Result<Json> page = node.call("GET", "/2015-03-31/functions" + query);
    if (!page) return page;
    for (Json& function : (*page)["Functions"]) functions.push_back(std::move(function));
    marker = page->contains("NextMarker") && (*page)["NextMarker"].is_string() ? page->at("NextMarker") : "";
  } while (!marker.empty());
  return functions;
}

int run_list(Cli& cli) {
  Result<Json> functions = all_functions(cli.node());
  if (!functions) return cli.report(functions.error());
  if (cli.json()) {
    cli.out() << functions->dump(2) << "\n";
    return kOk;
  }
  if (functions->empty()) {
    cli.err() << "no functions yet: fairlead deploy NAME FOLDER\n";
    return kOk;
  }
  using enum Table::Align;
  Table table({{"NAME"}, {"MEMORY", kRight}, {"TIMEOUT", kRight}, {"CODE", kRight}, {"MODIFIED"}, {"DESCRIPTION"}});
  for (const Json& function : *functions) {
    table.add_row({function.value("FunctionName", ""), fmt::format("{} MiB", function.value("MemorySize", 0)),
                   fmt::format("{} s", function.value("Timeout", 0)), format_bytes(function.value("CodeSize", 0.0)),
                   function.value("LastModified", ""), function.value("Description", "")});
  }
  cli.out() << table.text();
  return kOk;
}

}  // namespace

void add_list(Cli& cli) {
  cli.add_command("list", "List the functions", [&cli] { return run_list(cli); }).alias("ls");
}

}  // namespace fairlead::cli
