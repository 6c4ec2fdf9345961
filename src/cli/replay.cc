// `fairlead replay`: a trace or a scenario's arrivals, sent to a live node as an open loop.
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "cli/commands.h"
#include "cli/run_table.h"
#include "sim/burst_load.h"
#include "sim/scenario.h"

namespace fairlead::cli {
namespace {

using Payloads = std::map<std::string, std::string>;

struct ReplayOptions {
  std::string workload, format = "csv", payload = "{}", payloads;
  std::vector<std::string> calls;  // NAME=RATE, of "bursts"
  double speed = 1, duration_s = 0;
  std::uint64_t seed = 1;
  std::size_t clients = 256;
};

constexpr std::string_view kBursts = "bursts";  // a workload of functions that --calls names
constexpr double kBurstSeconds = 120;           // where --duration says nothing

// A scenario of these functions; its arrivals are its own.
Result<sim::Scenario> bursts_of(const ReplayOptions& options) {
  if (options.calls.empty()) {
    return fail(Errc::kInvalidArgument,
                "--calls is missing: which functions, and how often? --calls NAME=RATE,NAME=RATE");
  }
  sim::Scenario scenario = sim::built_in_scenario("zipf").value();
  scenario.name = kBursts;
  scenario.seeds = {options.seed};
  scenario.duration = from_seconds(options.duration_s > 0 ? options.duration_s : kBurstSeconds);
  scenario.functions.resize(1);
  const sim::FunctionModel any = scenario.functions.front();
  scenario.functions.clear();
  for (const std::string& call : options.calls) {
    const auto rate = sim::named_rate(call);
    if (!rate) return fail(rate.error());
    scenario.functions.push_back(any);
    scenario.functions.back().name = rate->first;
  }
  return scenario;
}

std::unique_ptr<sim::ArrivalSource> arrivals_of(const sim::Scenario& scenario, const ReplayOptions& options) {
  if (options.workload != kBursts) return make_arrivals(scenario, options.seed);
  std::vector<double> rates;
  for (const std::string& call : options.calls) rates.push_back(sim::named_rate(call).value().second);
  return std::make_unique<sim::BurstSource>(rates, scenario.duration, options.seed);
}

// The name of a built-in scenario, a scenario file or a trace.
Result<sim::Scenario> workload_of(const ReplayOptions& options) {
  if (options.workload == kBursts) return bursts_of(options);
  std::error_code ignored;
  Result<sim::Scenario> scenario = sim::built_in_scenario("zipf");
  if (options.workload.ends_with(".toml")) {
    scenario = sim::read_scenario(options.workload, *std::move(scenario));
  } else if (!sim::is_built_in(options.workload) && std::filesystem::exists(options.workload, ignored)) {
    scenario->workload.kind = sim::WorkloadKind::kTrace;
    scenario->workload.trace_path = options.workload;
    scenario->workload.trace_format = options.format;
  } else {
    scenario = sim::built_in_scenario(options.workload);
  }
  if (!scenario) return scenario;
  scenario->seeds = {options.seed};
  if (Status loaded = load_trace(*scenario); !loaded) return fail(loaded.error());
  if (options.duration_s > 0) scenario->duration = std::min(scenario->duration, from_seconds(options.duration_s));
  return scenario;
}

// By function: a trace knows what was called, not with what.
Result<Payloads> read_payloads(const std::string& path) {
  if (path.empty()) return Payloads();
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Errc::kNotFound, "--payloads {}: cannot be read", path);
  const Json document = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) {
    return fail(Errc::kInvalidArgument, "--payloads {}: must be a JSON object with a payload for each function", path);
  }
  Payloads payloads;
  for (const auto& [function, payload] : document.items()) payloads[function] = payload.dump();
  return payloads;
}

Status check_functions(Cli& cli, const sim::Scenario& scenario) {
  std::string missing;
  for (const sim::FunctionModel& function : scenario.functions) {
    const auto there = cli.node().call("GET", function_path(function.name));
    if (there) continue;
    if (there.error().code != Errc::kNotFound) return fail(there.error());
    missing += (missing.empty() ? "" : ", ") + function.name;
  }
  if (!missing.empty())
    return fail(Errc::kNotFound, "the node has no function {}; deploy them under these names", missing);
  return {};
}

// Arrivals are handed out in order to whichever thread is free; latency counts from the moment an invocation was due, so
// that one sent late (all threads busy) shows as what it is.
class Player {
 public:
  Player(const sim::Scenario& scenario, const ReplayOptions& options, const Payloads& payloads, std::string endpoint)
      : scenario_(scenario),
        options_(options),
        endpoint_(std::move(endpoint)),
        arrivals_(arrivals_of(scenario, options)) {
    for (const sim::FunctionModel& function : scenario.functions) {
      result_.functions.push_back({.name = function.name});
      const auto own = payloads.find(function.name);
      payloads_.push_back(own == payloads.end() ? options.payload : own->second);
    }
    result_.seed = options.seed;
  }

  sim::RunResult play() {
    begin_ = monotonic_now();
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < options_.clients; ++i) threads.emplace_back([this] { send_until_done(); });
    for (std::thread& thread : threads) thread.join();
    const MutexLock lock(mutex_);
    result_.seconds = to_seconds(monotonic_now() - begin_);
    return std::move(result_);
  }
  std::uint64_t sent_late() const { return sent_late_; }

 private:
  std::optional<sim::Arrival> take() {
    const MutexLock lock(mutex_);
    auto arrival = arrivals_->next();
    if (arrival && arrival->at >= Instant(scenario_.duration)) arrival.reset();
    return arrival;
  }

  void send_until_done() {
    NodeClient node(endpoint_, token_for(endpoint_));
    while (const auto arrival = take()) {
      const auto offset =
          Duration(static_cast<Duration::rep>(to_seconds(arrival->at - Instant{}) / options_.speed * 1e9));
      const Instant due = begin_ + offset;
      if (monotonic_now() > due + std::chrono::milliseconds(10)) ++sent_late_;
      std::this_thread::sleep_for(due - monotonic_now());
      const auto answer = node.invoke(scenario_.functions[arrival->function].name, payloads_[arrival->function], {});
      record(arrival->function, answer, monotonic_now() - due);
    }
  }

  void record(std::size_t function, const Result<NodeClient::InvokeAnswer>& answer, Duration latency) {
    const MutexLock lock(mutex_);
    sim::FunctionResult& result = result_.functions[function];
    ++result.arrived;
    if (!answer) {
      ++(answer.error().code == Errc::kResourceExhausted ? result.refused : result.failed);
      return;
    }
    ++(answer->function_error.empty() ? result.answered : result.failed);
    ++(answer->start == "cold" ? result.cold : answer->start == "host-warm" ? result.host_warm : result.device_warm);
    result.latency.add(latency);
    result_.latency.add(latency);
    const double exec_ms = std::atof(answer->exec_ms.c_str());
    result.service_seconds += exec_ms / 1000;
    result_.busy_seconds += exec_ms / 1000;
  }

  const sim::Scenario& scenario_;
  const ReplayOptions& options_;
  const std::string endpoint_;
  std::vector<std::string> payloads_;  // by function
  Instant begin_;
  std::atomic<std::uint64_t> sent_late_ = 0;
  Mutex mutex_;
  const std::unique_ptr<sim::ArrivalSource> arrivals_ FL_PT_GUARDED_BY(mutex_);
  sim::RunResult result_ FL_GUARDED_BY(mutex_);
};

int run_replay(Cli& cli, const ReplayOptions& options) {
  const auto scenario = workload_of(options);
  if (!scenario) return cli.report(scenario.error());
  if (Status there = check_functions(cli, *scenario); !there) return cli.report(there.error());
  const auto payloads = read_payloads(options.payloads);
  if (!payloads) return cli.report(payloads.error());
  Player player(*scenario, options, *payloads, cli.endpoint());
  sim::Outcomes outcome{"node", *scenario, {player.play()}, {}};
  outcome.total = outcome.runs.front();
  if (cli.json()) {
    cli.out() << run_json(outcome).dump(2) << '\n';
  } else {
    cli.out() << run_table({outcome});
  }
  if (player.sent_late() > 0) {
    cli.err() << fmt::format(
        "{} of {} invocations were sent late: {} clients were all waiting; use more with --clients\n",
        player.sent_late(), outcome.total.arrived(), options.clients);
  }
  std::uint64_t failed = 0;
  for (const sim::FunctionResult& function : outcome.total.functions) failed += function.failed + function.refused;
  if (failed > 0) cli.err() << fmt::format("{} invocations failed or were refused\n", failed);
  return failed == 0 ? kOk : kFunctionError;
}

}  // namespace

void add_replay(Cli& cli) {
  auto options = std::make_shared<ReplayOptions>();  // shared: the parser writes it, the command reads it
  CLI::App& command =
      cli.add_command("replay", "Send a trace or a scenario's arrivals to a node, and report as sim does",
                      [&cli, options] { return run_replay(cli, *options); });
  command.option_defaults()->always_capture_default();
  command.add_option("workload", options->workload, "A trace, a scenario file, a built-in scenario, or bursts")
      ->required();
  command
      .add_option(
          "--calls", options->calls,
          "Of bursts: NAME=RATE, the usual requests per second of each function; bursts are 2 to 5 times as many")
      ->delimiter(',');
  command.add_option("--format", options->format, "Of the trace")->check(CLI::IsMember(sim::trace_formats()));
  command.add_option("--speed", options->speed, "How much faster than the trace")->check(CLI::Range(1e-3, 1e6));
  command.add_option("--duration", options->duration_s, "Only the first so many seconds of it; 0: all, of bursts 120")
      ->check(CLI::Range(0.0, 1e9));
  command.add_option("--payload", options->payload, "Of every invocation");
  command.add_option("--payloads", options->payloads,
                     "JSON file with an object of payloads by function; those not in it get --payload");
  command.add_option("--seed", options->seed, "Of a scenario's arrivals");
  command.add_option("--clients", options->clients, "Connections: as many can be waited for at a time")
      ->check(CLI::Range(1, 4096));
}

}  // namespace fairlead::cli
