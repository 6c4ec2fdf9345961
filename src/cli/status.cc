#include <ostream>

#include "cli/commands.h"
#include "cli/status_text.h"

namespace fairlead::cli {

void add_status(Cli& cli) {
  cli.add_command("status", "Show the node: counters and GPUs", [&cli]() -> int {
    Result<Json> status = cli.node().call("GET", "/fairlead/v1/status");
    if (!status) return cli.report(status.error());
    cli.out() << (cli.json() ? status->dump(2) + "\n"
                             : summary_text(*status) + "\n" + tenants_text(*status) + shares_text(*status) +
                                   gpus_text(*status) + pipelines_text(*status));
    return kOk;
  });
}

}  // namespace fairlead::cli
