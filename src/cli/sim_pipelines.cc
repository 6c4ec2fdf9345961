#include "cli/sim_pipelines.h"

#include "cli/experiment_rows.h"
#include "sim/pipelines/experiments.h"

namespace fairlead::cli {
namespace {

struct PipelinesCommand {
  std::vector<std::string> experiments;
  sim::PipelineOptions options;
  double seconds = 200;
};

int run_sim_pipelines(Cli& cli, PipelinesCommand command) {
  command.options.length = from_seconds(command.seconds);
  std::vector<std::string> experiments = command.experiments;
  if (experiments.empty()) {
    for (const std::string_view name : sim::pipeline_experiments()) experiments.emplace_back(name);
  }
  return print_experiments<sim::PipelineRow>(
      cli, experiments, {&sim::PipelineRow::contestant, "CONTESTANT", "contestant"},
      [&](const std::string& experiment) { return sim::run_pipelines(experiment, command.options); });
}

}  // namespace

void add_sim_pipelines(Cli& cli, CLI::App& sim) {
  auto pipelines = std::make_shared<PipelinesCommand>();  // shared: the parser writes it, the command reads it
  CLI::App& command =
      cli.add_command(sim, "pipelines", "Functions of several models on MIG slices: planners and orders side by side",
                      [&cli, pipelines] { return run_sim_pipelines(cli, *pipelines); });
  command
      .add_option("experiment", pipelines->experiments,
                  "counterexample, goodput, anytime, bursts, workloads; all by default")
      ->delimiter(',');
  command.add_option("--variant", pipelines->options.variants, "small, medium, large")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--partition", pipelines->options.partitions, "p1, p2, hybrid")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--seeds", pipelines->options.seeds, "Of bursts and workloads: runs with seeds 1 to N")
      ->check(CLI::Range(1, 1000));
  command.add_option("--chains", pipelines->options.chains, "Of goodput: random chains")->check(CLI::Range(1, 10'000));
  command.add_option("--seconds", pipelines->seconds, "Virtual seconds that are measured")
      ->check(CLI::Range(1.0, 100'000.0));
  command
      .add_option("--burstiness", pipelines->options.burstiness,
                  "Standard deviation of the logarithm of a function's rate")
      ->check(CLI::Range(0.0, 5.0));
  command.add_option("--hop-ms", pipelines->options.hop_ms, "What a hop takes in the paper's runtime")
      ->check(CLI::Range(0.0, 1000.0));
}

}  // namespace fairlead::cli
