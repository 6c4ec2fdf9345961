#include "cli/sim_ktask.h"

#include <fmt/format.h>

#include <ostream>

#include "cli/table.h"
#include "sim/ktask/simulation.h"

namespace fairlead::cli {
namespace {

struct KtaskOptions {
  std::vector<std::string> workloads = {"jacobi"};
  std::vector<std::string> systems = {"fairlead", "window", "kaas", "etask"};
  std::vector<std::size_t> replicas = {1, 4, 8, 16, 32};
  std::vector<std::string> set;
  std::string sweep;
  double online = 0;
  std::uint64_t seeds = 1;
  bool settings = false;
};

// One line of the table: the same setup with every seed.
struct Run {
  std::string workload, system, value;
  std::size_t replicas = 0;
  sim::KtaskSetup setup;

  double throughput = 0, spread = 0, gpu_busy = 0, peak = 0, rate = 0;  // means over seeds
  std::vector<double> throughputs, work, p50s, p90s;                    // of each seed
  sim::Histogram latency;
  std::uint64_t sent = 0, cold_starts = 0, loads = 0, state_hash = 0;
  std::int64_t loaded_bytes = 0;
};

Result<std::pair<std::string, std::string>> assignment(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return fail(Errc::kInvalidArgument, "{} is \"{}\", it must be KEY=VALUE", option, text);
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Result<Run> run_of(const KtaskOptions& options, Run run, const std::string& key) {
  auto setup = sim::ktask_system(run.system);
  if (!setup) return fail(setup.error());
  auto clients = sim::ktask_clients(run.workload, run.replicas);
  if (!clients) return fail(clients.error());
  setup->clients = std::move(*clients);
  for (const std::string& text : options.set) {
    const auto pair = assignment("--set", text);
    if (!pair) return fail(pair.error());
    if (Status done = sim::set(*setup, pair->first, pair->second); !done) return fail(done.error());
  }
  if (!key.empty()) {
    if (Status done = sim::set(*setup, key, run.value); !done) return fail(done.error());
  }
  if (Status sound = sim::check(*setup); !sound) return fail(sound.error());
  run.setup = std::move(*setup);
  return run;
}

Result<std::vector<Run>> runs_of(const KtaskOptions& options) {
  std::string key;
  std::vector<std::string> values = {""};
  if (!options.sweep.empty()) {
    const auto pair = assignment("--sweep", options.sweep);
    if (!pair) return fail(pair.error());
    key = pair->first;
    values = CLI::detail::split(pair->second, ',');
  }
  std::vector<Run> runs;
  for (const std::string& workload : options.workloads) {
    for (const std::string& system : options.systems) {
      for (const std::size_t replicas : options.replicas) {
        for (const std::string& value : values) {
          auto run =
              run_of(options, {.workload = workload, .system = system, .value = value, .replicas = replicas}, key);
          if (!run) return fail(run.error());
          runs.push_back(std::move(*run));
        }
      }
    }
  }
  return runs;
}

void carry_out(Run& run, const KtaskOptions& options) {
  const bool online = options.online > 0 || run.setup.rate;
  for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
    run.setup.seed = seed;
    const sim::KtaskOnline done = online ? sim::run_online(run.setup, options.online)
                                         : sim::KtaskOnline{.result = sim::KtaskSimulation(run.setup).run()};
    const double share = 1 / static_cast<double>(options.seeds);
    run.peak += share * done.peak;
    run.rate += share * done.rate;
    run.throughputs.push_back(done.result.throughput());
    run.work.push_back(done.result.work(run.setup));
    run.p50s.push_back(to_seconds(done.result.latency.percentile(0.5)));
    run.p90s.push_back(to_seconds(done.result.latency.percentile(0.9)));
    run.throughput += share * done.result.throughput();
    run.spread += share * done.result.spread();
    run.gpu_busy += share * done.result.gpu_busy;
    run.latency.merge(done.result.latency);
    run.sent += done.result.sent;
    run.cold_starts += done.result.cold_starts;
    run.loads += done.result.objects.host_hits + done.result.objects.misses - done.result.sent;  // inputs always load
    run.loaded_bytes += done.result.objects.loaded.count();
    run.state_hash = run.state_hash * 31 + done.result.state_hash;
  }
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

Json json_of(const Run& run) {
  Json json = {{"workload", run.workload},
               {"system", run.system},
               {"replicas", run.replicas},
               {"throughput_per_s", run.throughput},
               {"throughput_by_seed_per_s", run.throughputs},
               {"kernel_s_by_seed_per_s", run.work},
               {"p50_by_seed_s", run.p50s},
               {"p90_by_seed_s", run.p90s},
               {"p50_s", to_seconds(run.latency.percentile(0.5))},
               {"p90_s", to_seconds(run.latency.percentile(0.9))},
               {"p99_s", to_seconds(run.latency.percentile(0.99))},
               {"mean_s", run.latency.mean_seconds()},
               {"spread", run.spread},
               {"sent", run.sent},
               {"cold_starts", run.cold_starts},
               {"constants_loaded", run.loads},
               {"loaded_bytes", run.loaded_bytes},
               {"gpu_busy", run.gpu_busy},
               {"state_hash", fmt::format("{:016x}", run.state_hash)}};
  if (!run.value.empty()) json["value"] = run.value;
  if (run.rate > 0) {
    json["peak_per_s"] = run.peak;
    json["rate_per_s"] = run.rate;
  }
  return json;
}

std::string table_of(const std::vector<Run>& runs) {
  using enum Table::Align;
  Table table({{"WORKLOAD"},
               {"SYSTEM"},
               {"REPLICAS", kRight},
               {"VALUE", kRight},
               {"SENT/S", kRight},
               {"ANSWERED/S", kRight},
               {"P50 ms", kRight},
               {"P90 ms", kRight},
               {"SPREAD", kRight},
               {"LOADS", kRight},
               {"COLD", kRight},
               {"BUSY", kRight},
               {"HASH"}});
  for (const Run& run : runs) {
    table.add_row({run.workload, run.system, fmt::format("{}", run.replicas), run.value,
                   run.rate > 0 ? fmt::format("{:.1f}", run.rate) : "-", fmt::format("{:.1f}", run.throughput),
                   fmt::format("{:.1f}", to_ms(run.latency.percentile(0.5))),
                   fmt::format("{:.1f}", to_ms(run.latency.percentile(0.9))), fmt::format("{:.2f}", run.spread),
                   fmt::format("{:.1f} %", percent(run.loads, run.sent)),
                   fmt::format("{:.1f} %", percent(run.cold_starts, run.sent)),
                   fmt::format("{:.0f} %", 100 * run.gpu_busy), fmt::format("{:08x}", run.state_hash & 0xffffffff)});
  }
  return table.text();
}

int show_settings(Cli& cli) {
  Table table({{"SETTING"}, {"MEANING"}});
  for (const sim::KtaskSetting& setting : sim::ktask_settings()) table.add_row({setting.key, setting.meaning});
  cli.out() << table.text();
  return kOk;
}

int run_sim_ktask(Cli& cli, const KtaskOptions& options) {
  if (options.settings) return show_settings(cli);
  auto runs = runs_of(options);
  if (!runs) return cli.report(runs.error());
  for (Run& run : *runs) carry_out(run, options);
  if (!cli.json()) {
    cli.out() << table_of(*runs);
    return kOk;
  }
  Json all = Json::array();
  for (const Run& run : *runs) all.push_back(json_of(run));
  cli.out() << all.dump(2) << '\n';
  return kOk;
}

}  // namespace

void add_sim_ktask(Cli& cli, CLI::App& sim) {
  auto options = std::make_shared<KtaskOptions>();  // shared: the parser writes it, the command reads it
  CLI::App& command = cli.add_command(sim, "ktask", "Kernel tasks on modelled GPUs: systems and settings side by side",
                                      [&cli, options] { return run_sim_ktask(cli, *options); });
  command.add_option("workload", options->workloads, "micro, resnet50, bert, cgemm, jacobi; a mixture: bert+cgemm")
      ->delimiter(',');
  command
      .add_option("--system", options->systems,
                  "fairlead (a node's defaults), window (resident-window), kaas (the paper's), etask (its baseline)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--replicas", options->replicas, "Clients of each workload, each with constants of its own")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--online", options->online, "Poisson arrivals at this share of the peak, instead of closed loops")
      ->check(CLI::Range(0.01, 0.99));
  command.add_option("--set", options->set, "KEY=VALUE; may be repeated")->allow_extra_args(false);
  command.add_option("--sweep", options->sweep, "KEY=VALUE,VALUE,...: one run for each");
  command.add_option("--seeds", options->seeds, "Runs with seeds 1 to N")->check(CLI::Range(1, 1000));
  command.add_flag("--settings", options->settings, "List the settings and what they mean");
}

}  // namespace fairlead::cli
