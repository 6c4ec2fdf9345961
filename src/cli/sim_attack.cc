#include "cli/sim_attack.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>

#include "cli/sim_scenario.h"
#include "cli/table.h"
#include "sim/attack/attack.h"
#include "sim/attack/workload_family.h"

namespace fairlead::cli {
namespace {

using sim::Measure;
using sim::Rival;

struct AttackCommand {
  std::vector<std::string> files, families;
  std::string out;
  std::size_t evaluations = 2000, worst = 200;
  std::uint64_t seed = 1;
  unsigned threads = 0;
  bool check = false;
};

std::string times(double ratio) {
  return fmt::format("{:.2f}", ratio);
}

std::string seconds(double value) {
  return fmt::format("{:.3f}", value);
}

// ---- given scenarios: judged as they are

Json json_of(const std::string& name, const sim::Comparison& comparison) {
  Json json = {{"scenario", name}};
  const auto put = [&](const char* system, const sim::RunResult& run) {
    json[system] = {{"arrived", run.arrived()},
                    {"mean_s", run.latency.mean_seconds()},
                    {"p99_s", to_seconds(run.latency.percentile(0.99))},
                    {"worst_gap_s", run.worst_gap},
                    {"utilisation", run.busy_seconds / run.seconds}};
  };
  put("node", comparison.node);
  for (const Rival rival : sim::kRivals) put(sim::name_of(rival), comparison.rival(rival));
  for (const Measure measure : sim::kMeasures) {
    for (const Rival rival : sim::kRivals) {
      json["ratios"][sim::name_of(measure)][sim::name_of(rival)] = comparison.ratio(measure, rival);
    }
  }
  json["beyond_bounds"] = sim::beyond_bounds(comparison);
  return json;
}

int judge(Cli& cli, const AttackCommand& options) {
  using enum Table::Align;
  Table table({{"SCENARIO"},
               {"CALLS", kRight},
               {"MEAN s", kRight},
               {"fcfs", kRight},
               {"paper", kRight},
               {"P99 s", kRight},
               {"fcfs", kRight},
               {"paper", kRight},
               {"WORST FLOW x fcfs", kRight},
               {"x paper", kRight}});
  Json all = Json::array();
  std::string beyond;
  for (const std::string& file : options.files) {
    auto scenario = named_scenario(cli, file);
    if (!scenario) return cli.report(scenario.error());
    if (Status loaded = load_trace(*scenario); !loaded) return cli.report(loaded.error());
    const sim::Comparison comparison = sim::compare(*scenario);
    std::vector<std::string> cells = {scenario->name, std::to_string(comparison.node.arrived())};
    const sim::RunResult* const runs[] = {&comparison.node, &comparison.rival(Rival::kFcfs),
                                          &comparison.rival(Rival::kPaper)};
    for (const auto* run : runs) cells.push_back(seconds(run->latency.mean_seconds()));
    for (const auto* run : runs) cells.push_back(seconds(to_seconds(run->latency.percentile(0.99))));
    for (const Rival rival : sim::kRivals) cells.push_back(times(comparison.ratio(Measure::kWorstFlow, rival)));
    table.add_row(cells);
    all.push_back(json_of(file, comparison));
    for (const std::string& line : sim::beyond_bounds(comparison)) beyond += fmt::format("{}: {}\n", file, line);
  }
  cli.out() << (cli.json() ? all.dump(2) + '\n' : table.text() + beyond);
  return options.check && !beyond.empty() ? kFailed : kOk;
}

// ---- the search

Json json_of(const sim::Attack& attack) {
  Json json = {{"family", attack.family}, {"severity", attack.severity()}, {"late_flows", attack.late_flows}};
  for (const Measure measure : sim::kMeasures) {
    for (const Rival rival : sim::kRivals) {
      json["ratios"][sim::name_of(measure)][sim::name_of(rival)] = attack.ratio(measure, rival);
    }
  }
  json["powers"] = attack.powers;
  json["scenario"] = sim::attack_toml(attack);
  return json;
}

Status write_worst(const std::vector<sim::Attack>& tried, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const Measure measure : sim::kMeasures) {
    for (const Rival rival : sim::kRivals) {
      const sim::Attack& worst = worst_of(tried, measure, rival);
      const auto path = std::filesystem::path(folder) /
                        fmt::format("{}-{}-{}.toml", worst.family, sim::name_of(measure), sim::name_of(rival));
      std::ofstream file(path, std::ios::trunc);
      file << sim::attack_toml(worst);
      if (!file.flush()) return fail(Errc::kIo, "cannot write {}", path.string());
    }
  }
  return {};
}

std::vector<std::string> row_of(const std::vector<sim::Attack>& tried) {
  std::vector<std::string> cells = {tried.front().family, std::to_string(tried.size())};
  for (const Measure measure : sim::kMeasures) {
    for (const Rival rival : sim::kRivals)
      cells.push_back(times(worst_of(tried, measure, rival).ratio(measure, rival)));
  }
  return cells;
}

std::string verdict_of(const std::vector<sim::Attack>& worst) {
  const auto beyond = std::count_if(worst.begin(), worst.end(), [](const sim::Attack& a) { return a.severity() > 1; });
  const auto late = std::count_if(worst.begin(), worst.end(), [](const sim::Attack& a) { return a.late_flows > 0; });
  double mean = 0, p99 = 0;
  for (const sim::Attack& attack : worst) {
    mean = std::max(mean, attack.worst_ratio(Measure::kMean));
    p99 = std::max(p99, attack.worst_ratio(Measure::kP99));
  }
  return fmt::format(
      "The {} worst: mean at most {:.2f} x the better of fcfs and paper (bound {}), p99 at most {:.2f} x (bound {}); "
      "{} beyond a "
      "bound, {} with a function within its share that waited longer than it may\n",
      worst.size(), mean, sim::kBounds.mean, p99, sim::kBounds.p99, beyond, late);
}

int search(Cli& cli, const AttackCommand& options) {
  using enum Table::Align;
  Table table({{"FAMILY"},
               {"TRIED", kRight},
               {"MEAN x fcfs", kRight},
               {"x paper", kRight},
               {"P99 x fcfs", kRight},
               {"x paper", kRight},
               {"WORST FLOW x fcfs", kRight},
               {"x paper", kRight}});
  std::vector<sim::Attack> all;
  for (const std::string& family : options.families.empty() ? sim::workload_families() : options.families) {
    const auto progress = [&](double done) {
      if (!cli.out_is_terminal()) return;
      cli.err() << fmt::format("\r{} {:3.0f} %{}", family, 100 * done, done >= 1 ? "\r                    \r" : "")
                << std::flush;
    };
    const auto tried = sim::attack(
        {.family = family, .evaluations = options.evaluations, .seed = options.seed, .threads = options.threads},
        progress);
    if (!tried) return cli.report(tried.error());
    table.add_row(row_of(*tried));
    if (!options.out.empty()) {
      if (Status written = write_worst(*tried, options.out); !written) return cli.report(written.error());
    }
    all.insert(all.end(), tried->begin(), tried->end());
  }
  const std::vector<sim::Attack> worst = most_severe(std::move(all), options.worst);
  if (cli.json()) {
    Json json = Json::array();
    for (const sim::Attack& attack : worst) json.push_back(json_of(attack));
    cli.out() << json.dump(2) << '\n';
  } else {
    cli.out() << table.text() << verdict_of(worst);
  }
  const bool is_beyond = std::any_of(worst.begin(), worst.end(), [](const sim::Attack& a) { return a.severity() > 1; });
  return options.check && is_beyond ? kFailed : kOk;
}

}  // namespace

void add_sim_attack(Cli& cli, CLI::App& sim) {
  auto options = std::make_shared<AttackCommand>();  // shared: the parser writes it, the command reads it
  CLI::App& command = cli.add_command(
      sim, "attack",
      "Search workloads that the default scheduler serves worse than FCFS or the paper's, or judge given ones",
      [&cli, options] { return options->files.empty() ? search(cli, *options) : judge(cli, *options); });
  command.add_option("scenarios", options->files,
                     "Judge these scenarios instead of searching; the scheduler is not theirs");
  command
      .add_option(
          "--family", options->families,
          "What is scaled by 0.01 to 100: " + CLI::detail::join(sim::workload_families(), ", ") + "; all without it")
      ->delimiter(',');
  command.add_option("--evaluations", options->evaluations, "Workloads to try in each family")
      ->check(CLI::Range(1, 10'000'000));
  command.add_option("--seed", options->seed, "Of the search");
  command.add_option("--threads", options->threads, "Cores to use; 0: all")->check(CLI::Range(0, 1024));
  command.add_option("--worst", options->worst, "How many to judge together, and to list with --json")
      ->check(CLI::PositiveNumber);
  command.add_option("--out", options->out, "Write the worst in each measure as a scenario file into this folder");
  command.add_flag("--check", options->check, "Exit with 6 where a bound does not hold");
}

}  // namespace fairlead::cli
