// `fairlead sim`: what would happen, without a node.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <ostream>

#include "cli/commands.h"
#include "cli/run_table.h"
#include "cli/sim_attack.h"
#include "cli/sim_chart.h"
#include "cli/sim_cluster.h"
#include "cli/sim_ktask.h"
#include "cli/sim_pipelines.h"
#include "cli/sim_record.h"
#include "cli/sim_scaling.h"
#include "cli/sim_scenario.h"
#include "cli/sim_shares.h"
#include "cli/split.h"
#include "cli/table.h"
#include "cli/waiting.h"
#include "decide/queueing/policy.h"
#include "sim/experiment.h"
#include "sim/html_report.h"
#include "sim/settings.h"

namespace fairlead::cli {
namespace {

struct SimOptions {
  std::string scenario = "zipf";
  std::vector<std::string> policies;
  std::vector<std::string> set;
  std::string preset, sweep, html;
  std::size_t seeds = 0;
  std::uint64_t seed = 0;
  unsigned threads = 0;
  bool settings = false, samples = false, by_seed = false;
};

Result<sim::Scenario> scenario_of(Cli& cli, const SimOptions& options) {
  Result<sim::Scenario> scenario = named_scenario(cli, options.scenario);
  if (!scenario) return scenario;
  if (!options.preset.empty()) {
    if (Status done = sim::set(*scenario, "preset", options.preset); !done) return fail(done.error());
  }
  for (const std::string& assignment : options.set) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) {
      return fail(Errc::kInvalidArgument, "--set is \"{}\", it must be KEY=VALUE", assignment);
    }
    Status done = sim::set(*scenario, assignment.substr(0, equals), assignment.substr(equals + 1));
    if (!done) return fail(done.error());
  }
  if (options.seeds > 0) {
    scenario->seeds.clear();
    for (std::size_t seed = 1; seed <= options.seeds; ++seed) scenario->seeds.push_back(seed);
  }
  if (options.seed > 0) scenario->seeds = {options.seed};
  return scenario;
}

Result<std::vector<sim::Variant>> variants_of(const SimOptions& options, const sim::Scenario& scenario) {
  std::vector<std::string> policies = options.policies;
  if (policies == std::vector<std::string>{"all"}) {
    policies.clear();
    for (const std::string_view name : policy_names()) policies.emplace_back(name);
  }
  if (options.sweep.empty()) return sim::variants(scenario, policies, "", {});
  const std::size_t equals = options.sweep.find('=');
  if (equals == std::string::npos) {
    return fail(Errc::kInvalidArgument, "--sweep is \"{}\", it must be KEY=VALUE,VALUE,...", options.sweep);
  }
  return sim::variants(scenario, policies, options.sweep.substr(0, equals),
                       split(options.sweep.substr(equals + 1), ','));
}

int show_settings(Cli& cli) {
  Table table({{"SETTING"}, {"MEANING"}});
  for (const sim::SettingHelp& setting : sim::settings()) table.add_row({setting.key, setting.meaning});
  Table known({{"POLICY"}, {"NEXT IS"}});
  for (const Policy* policy : policies()) known.add_row({std::string(policy->name), std::string(policy->next_is)});
  cli.out() << table.text() << '\n' << known.text();
  return kOk;
}

int run_sim(Cli& cli, const SimOptions& options) {
  if (options.settings) return show_settings(cli);
  const auto scenario = scenario_of(cli, options);
  if (!scenario) return cli.report(scenario.error());
  const auto variants = variants_of(options, *scenario);
  if (!variants) return cli.report(variants.error());

  int last_shown = -1;
  const auto progress = [&](double done) {
    const int percent_done = static_cast<int>(100 * done);
    if (!cli.out_is_terminal() || ::isatty(STDERR_FILENO) == 0 || percent_done == last_shown) return;
    last_shown = percent_done;
    cli.err() << fmt::format("\r{}\x1b[K", percent_done == 100 ? "" : progress_bar(done)) << std::flush;
  };
  const auto outcomes = sim::run_all(*variants, options.threads, progress);

  if (!options.html.empty()) {
    std::ofstream file(options.html);
    file << sim::html_report("fairlead sim " + scenario->name, outcomes);
    if (!file.flush()) return cli.report({Errc::kIo, "cannot write " + options.html});
  }
  if (cli.json()) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const sim::Outcomes& outcome : outcomes) {
      all.push_back(run_json(outcome));
      if (options.samples) add_samples(outcome, all.back());
      if (options.by_seed) add_seeds(outcome, all.back());
    }
    cli.out() << all.dump(2) << '\n';
  } else {
    const sim::Scenario& shown = variants->front().scenario;
    cli.out() << fmt::format("scenario {}, {} functions, {} GPU{}, {:.0f} s, seeds {} to {}\n", shown.name,
                             shown.functions.size(), shown.devices, shown.devices == 1 ? "" : "s",
                             to_seconds(shown.duration), shown.seeds.front(), shown.seeds.back());
    cli.out() << run_table(outcomes);
  }
  return kOk;
}

}  // namespace

void add_sim(Cli& cli) {
  auto options = std::make_shared<SimOptions>();  // shared: the parser writes it, the command reads it
  CLI::App& command = cli.add_command("sim", "Try policies and settings in virtual time, without a node or a GPU",
                                      [&cli, options] { return run_sim(cli, *options); });
  command.add_option("scenario", options->scenario,
                     "A TOML file, or a built-in scenario: " + CLI::detail::join(sim::built_in_scenarios(), ", "));
  command.add_option(
      "--preset", options->preset,
      "Settings of the scheduler: node (what `fairlead serve` does, the default) or paper; --set changes them");
  command.add_option("--policy", options->policies, "Policies to compare, or all")->delimiter(',');
  command.add_option("--set", options->set, "KEY=VALUE; may be repeated")->allow_extra_args(false);
  command.add_option("--sweep", options->sweep, "KEY=VALUE,VALUE,...: one run for each");
  command.add_option("--seeds", options->seeds, "Runs with seeds 1 to N")->check(CLI::Range(1, 100'000));
  command.add_option("--seed", options->seed, "One run with this seed")->check(CLI::PositiveNumber);
  command.add_option("--threads", options->threads, "Cores to use; 0: all")->check(CLI::Range(0, 1024));
  command.add_option("--html", options->html, "Also write a report with plots to this file");
  command.add_flag("--samples", options->samples, "With --json: also how the first seed went over time");
  command.add_flag("--by-seed", options->by_seed, "With --json: also each seed's own results");
  command.add_flag("--settings", options->settings, "List the settings and what they mean");
  add_sim_attack(cli, command);
  add_sim_record(cli, command);
  add_sim_chart(cli, command);
  add_sim_cluster(cli, command);
  add_sim_ktask(cli, command);
  add_sim_pipelines(cli, command);
  add_sim_scaling(cli, command);
  add_sim_shares(cli, command);
}

}  // namespace fairlead::cli
