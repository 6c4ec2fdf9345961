#include "cli/sim_scaling.h"

#include "cli/experiment_rows.h"
#include "sim/scaling/experiments.h"

namespace fairlead::cli {
namespace {

struct ScalingCommand {
  std::vector<std::string> experiments;
  sim::ScalingOptions options;
  double seconds = 300;
};

int run_sim_scaling(Cli& cli, ScalingCommand command) {
  command.options.length = from_seconds(command.seconds);
  std::vector<std::string> experiments = command.experiments;
  if (experiments.empty()) {
    for (const std::string_view name : sim::scaling_experiments()) experiments.emplace_back(name);
  }
  return print_experiments<sim::ScalingRow>(
      cli, experiments, {&sim::ScalingRow::contestant, "CONTESTANT", "contestant"},
      [&](const std::string& experiment) { return sim::run_scaling(experiment, command.options); });
}

}  // namespace

void add_sim_scaling(Cli& cli, CLI::App& sim) {
  auto scaling = std::make_shared<ScalingCommand>();  // shared: the parser writes it, the command reads it
  CLI::App& command =
      cli.add_command(sim, "scaling", "Finding, placing and scaling shares: packers and scalers side by side",
                      [&cli, scaling] { return run_sim_scaling(cli, *scaling); });
  command
      .add_option("experiment", scaling->experiments,
                  "orders, churn, static, cluster, bursts, ramp, profiler; all by default")
      ->delimiter(',');
  command.add_option("--mix", scaling->options.mixes, "Of churn: grid, small, paper, continuous")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--seeds", scaling->options.seeds, "Runs of each with seeds 1 to N")->check(CLI::Range(1, 1000));
  command.add_option("--events", scaling->options.events, "Of churn: instances that come or go")
      ->check(CLI::Range(1, 10'000'000));
  command.add_option("--reserve", scaling->options.reserve_percent, "Per cent of each device's time kept back")
      ->check(CLI::Range(0.0, 50.0));
  command.add_option("--threshold", scaling->options.threshold, "Free rectangles before their list is made anew")
      ->check(CLI::Range(0, 10'000));
  command.add_option("--move-price", scaling->options.move_price, "Of a move, in devices in use")
      ->check(CLI::Range(0.0, 100.0));
  command.add_option("--predictor", scaling->options.predictor,
                     "Of bursts and ramp: last-window, ewma, holt, histogram");
  command.add_option("--seconds", scaling->seconds, "Of bursts and ramp: virtual seconds that are measured")
      ->check(CLI::Range(1.0, 100'000.0));
  command
      .add_option("--trial-error", scaling->options.trial_error,
                  "Of profiler: the standard deviation of a trial, as a part")
      ->check(CLI::Range(0.001, 1.0));
  command.add_option("--idle", scaling->options.idle_part, "Part of the instances that is idle at any moment")
      ->check(CLI::Range(0.0, 1.0));
}

}  // namespace fairlead::cli
