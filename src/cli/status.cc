#include <fstream>
#include <memory>
#include <ostream>

#include "cli/commands.h"
#include "cli/scaling_page.h"
#include "cli/status_page.h"
#include "cli/status_text.h"

namespace fairlead::cli {
namespace {

int write_page(Cli& cli, const std::string& path, const Json& status) {
  const Result<Json> scaling = cli.node().call("GET", "/fairlead/v1/scaling");
  if (!scaling) return cli.report(scaling.error());
  std::ofstream file(path);
  file << status_page(status, scaling->value("functions", Json::array())) << std::flush;
  if (!file) return cli.report({Errc::kInvalidArgument, "--html: " + path + " cannot be written"});
  return kOk;
}

}  // namespace

void add_status(Cli& cli) {
  const auto html = std::make_shared<std::string>();
  CLI::App& command = cli.add_command("status", "Show the node: counters and GPUs", [&cli, html]() -> int {
    Result<Json> status = cli.node().call("GET", "/fairlead/v1/status");
    if (!status) return cli.report(status.error());
    if (!html->empty()) {
      if (const int written = write_page(cli, *html, *status); written != kOk) return written;
    }
    cli.out() << (cli.json() ? status->dump(2) + "\n"
                             : summary_text(*status) + "\n" + tenants_text(*status) + shares_text(*status) +
                                   gpus_text(*status) + pipelines_text(*status) + start_failures_text(*status));
    return kOk;
  });
  command.add_option("--html", *html, "Also write a page to this file: each GPU's rectangles, and who waits for what");
}

}  // namespace fairlead::cli
