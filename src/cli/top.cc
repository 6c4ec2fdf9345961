// fairlead top: on a terminal a screen with keys (top_view.h), elsewhere the tables of `status` again and again.
#include <chrono>
#include <condition_variable>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "cli/commands.h"
#include "cli/patience.h"
#include "cli/status_text.h"
#include "cli/terminal.h"
#include "cli/top_view.h"

namespace fairlead::cli {
namespace {

struct Options {
  bool once = false;
  double period_seconds = 1;
};

constexpr const char* kStatus = "/fairlead/v1/status";
constexpr const char* kRecent = "/fairlead/v1/recent?limit=1000";
constexpr Duration kMostWait =
    std::chrono::seconds(5);  // for one answer: a node that hangs is one that does not answer
constexpr auto kLookAtKeys = std::chrono::milliseconds(100);

std::string tables(const Json& status) {
  return summary_text(status) + "\n" + gpus_text(status) + "\n" + tenants_text(status) + shares_text(status) +
         functions_text(status) + start_failures_text(status);
}

// Asks the node on a thread of its own: keys are heard while it does not answer.
class Watcher {
 public:
  struct Look {
    Result<Json> status = Json();
    Json recent;
  };

  Watcher(const std::string& endpoint, Duration period)
      : token_(token_for(endpoint)),
        node_(impatient_client(endpoint, kMostWait)),
        period_(period),
        thread_([this] { run(); }) {}
  ~Watcher() {
    {
      const MutexLock lock(mutex_);
      ends_ = true;
    }
    thread_.join();  // at most kMostWait, twice
  }
  Watcher(const Watcher&) = delete;

  std::optional<Look> take() {
    const MutexLock lock(mutex_);
    return std::exchange(look_, std::nullopt);
  }

 private:
  bool ends() {
    const MutexLock lock(mutex_);
    return ends_;
  }
  Result<Json> ask(const char* path) {
    net::ClientRequest request{.target = path};
    if (!token_.empty()) request.headers.push_back({"Authorization", "Bearer " + token_});
    const auto answer = node_.send(request);
    if (!answer) return fail(answer.error());
    if (answer->status >= 400) return fail(error_of(*answer));
    return Json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
  }
  void run() {
    while (!ends()) {
      const Instant began = monotonic_now();
      Look look{.status = ask(kStatus), .recent = Json()};
      if (look.status) {
        if (Result<Json> recent = ask(kRecent)) look.recent = *std::move(recent);
      }
      {
        const MutexLock lock(mutex_);
        look_ = std::move(look);
      }
      while (!ends() && monotonic_now() - began < period_) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  const std::string token_;
  net::HttpClient node_;
  const Duration period_;
  Mutex mutex_;
  std::optional<Look> look_ FL_GUARDED_BY(mutex_);
  bool ends_ FL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

int run_screen(Cli& cli, Terminal opened, const Options& options) {
  TopView view(wants_colour());
  Watcher watcher(cli.endpoint(), from_seconds(options.period_seconds));
  Terminal terminal(std::move(opened));  // goes first: who ends sees that, though the node still owes an answer
  std::string drawn;
  TerminalSize drawn_at;
  while (true) {
    if (auto look = watcher.take(); look && !view.paused()) {
      if (look->status) {
        view.observe(monotonic_now(), *look->status, look->recent, wall_clock_ms());
      } else {
        view.failed(monotonic_now(), look->status.error().message);
      }
    }
    const TerminalSize size = terminal.size();
    std::string frame = view.frame(monotonic_now(), size);
    if (frame != drawn || size != drawn_at) terminal.draw(frame);
    drawn = std::move(frame);
    drawn_at = size;
    const std::string key = terminal.key(kLookAtKeys);
    if (!key.empty() && !view.press(key)) return kOk;
  }
}

int run_top(Cli& cli, const Options& options) {
  if (!options.once && !cli.json() && cli.out_is_terminal()) {
    // Nobody there, or nobody who lets us look: said as any command says it, and not on a screen.
    if (const Result<Json> status = cli.node().call("GET", kStatus); !status) return cli.report(status.error());
    if (auto terminal = Terminal::open()) return run_screen(cli, *std::move(terminal), options);
  }
  while (true) {
    Result<Json> status = cli.node().call("GET", kStatus);
    if (!status) return cli.report(status.error());
    if (cli.json())
      cli.out() << status->dump() << std::endl;
    else
      cli.out() << tables(*status) << std::flush;
    if (options.once || !cli.out()) return kOk;
    if (!cli.json()) cli.out() << "\n";
    std::this_thread::sleep_for(std::chrono::duration<double>(options.period_seconds));
  }
}

}  // namespace

void add_top(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& command = cli.add_command("top", "Watch queues, instances and GPUs, until interrupted",
                                      [&cli, options] { return run_top(cli, *options); });
  command.add_flag("--once", options->once, "Print the tables of `status` once and stop");
  command.add_option("--period", options->period_seconds, "Seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command.footer(
      "On a terminal, ? shows the keys; NO_COLOR in the environment: no colours. Elsewhere, and with --once:\n"
      "STATE active, throttled (ahead of the others by more than T, so it waits) or inactive; AHEAD virtual time "
      "beyond\n"
      "the node's; WARM idle instances; HOST-WARM share of starts whose memory was on the"
      " host, COLD of those without an instance; MEAN and WAIT per call.");
}

}  // namespace fairlead::cli
