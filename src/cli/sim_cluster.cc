#include "cli/sim_cluster.h"

#include "cli/experiment_rows.h"
#include "sim/cluster/experiments.h"

namespace fairlead::cli {
namespace {

struct ClusterCommand {
  std::vector<std::string> experiments;
  sim::ClusterOptions options;
};

int run_sim_cluster(Cli& cli, const ClusterCommand& command) {
  std::vector<std::string> experiments = command.experiments;
  if (experiments.empty()) {
    for (const std::string_view name : sim::cluster_experiments()) experiments.emplace_back(name);
  }
  return print_experiments<sim::ClusterRow>(
      cli, experiments, {&sim::ClusterRow::contestant, "CONTESTANT", "contestant"},
      [&](const std::string& experiment) { return sim::run_cluster_experiment(experiment, command.options); });
}

}  // namespace

void add_sim_cluster(Cli& cli, CLI::App& sim) {
  auto cluster = std::make_shared<ClusterCommand>();  // shared: the parser writes it, the command reads it
  CLI::App& command = cli.add_command(sim, "cluster", "Many nodes: routings of calls, failures, fairness over nodes",
                                      [&cli, cluster] { return run_sim_cluster(cli, *cluster); });
  command.add_option("experiment", cluster->experiments, "routing, bounds, failures, fairness, speed; all by default")
      ->delimiter(',');
  command.add_option("--nodes", cluster->options.nodes, "Nodes")->check(CLI::Range(2, 10'000));
  command.add_option("--gpus", cluster->options.gpus, "GPUs of each node")->check(CLI::Range(1, 64));
  command.add_option("--load", cluster->options.load, "Offered: warm GPU seconds per second and GPU")
      ->check(CLI::Range(0.01, 2.0));
  command.add_option("--seconds", cluster->options.seconds, "Virtual seconds that are measured")
      ->check(CLI::Range(1.0, 100'000.0));
  command.add_option("--warm-up", cluster->options.warm_up, "Virtual seconds before")->check(CLI::Range(1.0, 10'000.0));
  command.add_option("--seed", cluster->options.seed, "Of the workload")->check(CLI::PositiveNumber);
  command.add_option("--threads", cluster->options.threads, "Cores to use; the results are alike")
      ->check(CLI::Range(1, 256));
}

}  // namespace fairlead::cli
