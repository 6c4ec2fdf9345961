#include <chrono>
#include <ostream>
#include <thread>

#include "cli/commands.h"
#include "cli/log_follower.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::string function;
  std::size_t tail_bytes = 64 << 10;
  bool follow = false;
};

constexpr std::chrono::milliseconds kPollPeriod{500};

constexpr std::size_t kMostTailBytes = 8 << 20;

Result<std::string> fetch(Cli& cli, const std::string& function, std::size_t bytes) {
  return cli.node().get_text(
      fmt::format("/fairlead/v1/functions/{}/log?tail={}", net::percent_encode(function), bytes));
}

// All that is new, where a function has written more than a tail since the last look.
Result<std::string> fetch_after(Cli& cli, const Options& options, const LogFollower& follower) {
  Result<std::string> tail = fetch(cli, options.function, options.tail_bytes);
  if (!tail || follower.reaches(*tail) || tail->size() < options.tail_bytes) return tail;
  tail = fetch(cli, options.function, kMostTailBytes);
  if (tail && !follower.reaches(*tail) && tail->size() >= kMostTailBytes) {
    cli.err() << "fairlead: lines are missing here: the function writes faster than they are read\n";
  }
  return tail;
}

int run_logs(Cli& cli, const Options& options) {
  LogFollower follower;
  while (true) {
    Result<std::string> tail = fetch_after(cli, options, follower);
    if (!tail) return cli.report(tail.error());
    if (cli.json())
      cli.out() << Json{{"log", *tail}}.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
    else
      cli.out() << follower.next(*tail) << std::flush;
    if (!options.follow || !cli.out()) return kOk;
    std::this_thread::sleep_for(kPollPeriod);
  }
}

}  // namespace

void add_logs(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      cli.add_command("logs", "Show what a function wrote", [&cli, options] { return run_logs(cli, *options); });
  command.add_option("NAME", options->function, "Function")->required();
  command.add_flag("-f,--follow", options->follow, "Go on with new lines until interrupted");
  command.add_option("--tail", options->tail_bytes, "Bytes from the end to begin with")
      ->check(CLI::Range(std::size_t{1}, kMostTailBytes))
      ->capture_default_str();
}

}  // namespace fairlead::cli
