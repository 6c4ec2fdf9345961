#include <chrono>
#include <ostream>
#include <thread>

#include "cli/commands.h"
#include "cli/status_text.h"

namespace fairlead::cli {
namespace {

struct Options {
  bool once = false;
  double period_seconds = 1;
};

// Home, then clear what follows: no flicker, and what was above stays in the scroll-back.
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

std::string screen(const Json& status) {
  return summary_text(status) + "\n" + gpus_text(status) + "\n" + tenants_text(status) + shares_text(status) +
         functions_text(status);
}

int run_top(Cli& cli, const Options& options) {
  while (true) {
    Result<Json> status = cli.node().call("GET", "/fairlead/v1/status");
    if (!status) return cli.report(status.error());
    if (cli.json())
      cli.out() << status->dump() << std::endl;
    else
      cli.out() << (options.once ? "" : kClearScreen) << screen(*status) << std::flush;
    if (options.once || !cli.out()) return kOk;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.period_seconds));
  }
}

}  // namespace

void add_top(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& command = cli.add_command("top", "Watch queues, instances and GPUs, until interrupted",
                                      [&cli, options] { return run_top(cli, *options); });
  command.add_flag("--once", options->once, "Print once and stop");
  command.add_option("--period", options->period_seconds, "Seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command.footer(
      "STATE active, throttled (ahead of the others by more than T, so it waits) or inactive; AHEAD virtual time "
      "beyond\n"
      "the node's; WARM idle instances; HOST-WARM share of starts whose memory was on the"
      " host, COLD of those without an instance; MEAN and WAIT per call.");
}

}  // namespace fairlead::cli
