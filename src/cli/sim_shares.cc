#include "cli/sim_shares.h"

#include <fstream>

#include "cli/experiment_rows.h"
#include "sim/shares/experiments.h"
#include "sim/shares/frames.h"

namespace fairlead::cli {
namespace {

struct SharesCommand {
  std::vector<std::string> experiments = {"delivered", "objectives", "reserved", "small"};
  sim::SharesOptions options;
  bool without_deadlines = false;
  std::string frames;  // a file
  double frames_ms = 40;
  double kernel_ms = 0.4, best_effort_kernel_ms = 0.4, frame_ms = 2, leash_ms = 0, gap_us = 0, seconds = 20,
         warm_up_s = 5;
};

// The first scheduler, on the clients of `reserved`.
Status draw_frames(const SharesCommand& command) {
  const sim::SharesOptions& options = command.options;
  sim::SharesSetup setup{.clients = sim::reserved_beside_best_effort(options),
                         .scheduler = options.schedulers.front(),
                         .options = options.places,
                         .leash = options.leash,
                         .tells_deadlines = options.tells_deadlines,
                         .warm_up = options.warm_up,
                         .length = from_seconds(command.frames_ms / 1000)};
  setup.drawn = setup.length;
  if (auto made = make_place_scheduler(setup.scheduler, setup.options); !made) return fail(made.error());
  const std::vector<sim::ShareClient> clients = setup.clients;
  const sim::SharesResult result = sim::SharesSimulation(std::move(setup)).run();
  std::ofstream file(command.frames, std::ios::trunc);
  file << (command.frames.ends_with(".json") ? sim::frames_trace(clients, result) : sim::frames_svg(clients, result));
  file.close();
  if (!file) return fail(Errc::kIo, "cannot write {}", command.frames);
  return {};
}

int run_sim_shares(Cli& cli, SharesCommand command) {
  command.options.most_kernel = from_seconds(command.kernel_ms / 1000);
  command.options.best_effort_kernel = from_seconds(command.best_effort_kernel_ms / 1000);
  command.options.places.shortest_frame = from_seconds(command.frame_ms / 1000);
  command.options.leash = from_seconds(command.leash_ms / 1000);
  command.options.gap = from_seconds(command.gap_us / 1e6);
  command.options.tells_deadlines = !command.without_deadlines;
  command.options.length = from_seconds(command.seconds);
  command.options.warm_up = from_seconds(command.warm_up_s);
  if (!command.frames.empty()) {
    if (Status drawn = draw_frames(command); !drawn) return cli.report(drawn.error());
    return kOk;
  }
  return print_experiments<sim::SharesRow>(
      cli, command.experiments, {&sim::SharesRow::scheduler, "SCHEDULER", "scheduler"},
      [&](const std::string& experiment) { return sim::run_experiment(experiment, command.options); });
}

}  // namespace

void add_sim_shares(Cli& cli, CLI::App& sim) {
  auto shares = std::make_shared<SharesCommand>();  // shared: the parser writes it, the command reads it
  CLI::App& command =
      cli.add_command(sim, "shares", "Shares of a GPU in time and space: schedulers of places side by side",
                      [&cli, shares] { return run_sim_shares(cli, *shares); });
  command
      .add_option("experiment", shares->experiments,
                  "delivered, objectives, reserved, small (these by default); profile, disturbed, pods, packed: the "
                  "paper's figures 8 to 11")
      ->delimiter(',');
  command
      .add_option(
          "--scheduler", shares->options.schedulers,
          "pacer (ours), paper (FaST-GShare's), backfill (past a head that does not fit), one (KubeShare, Gemini)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--mix", shares->options.mixes, "Of delivered: grid, small, paper, continuous")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--sets", shares->options.sets, "Of delivered: random sets for each seed")
      ->check(CLI::Range(1, 10'000));
  command.add_option("--seeds", shares->options.seeds, "Runs of each with seeds 1 to N")->check(CLI::Range(1, 1000));
  command.add_option("--seconds", shares->seconds, "Virtual seconds that are measured")
      ->check(CLI::Range(1.0, 100'000.0));
  command.add_option("--warm-up", shares->warm_up_s, "Virtual seconds before")->check(CLI::Range(0.0, 100'000.0));
  command.add_option("--kernel-ms", shares->kernel_ms, "The longest kernel")->check(CLI::Range(0.01, 1000.0));
  command
      .add_option("--best-effort-kernel-ms", shares->best_effort_kernel_ms,
                  "Of reserved: the longest kernel of best effort")
      ->check(CLI::Range(0.01, 1000.0));
  command.add_option("--frame-ms", shares->frame_ms, "The shortest frame, and a token's length")
      ->check(CLI::Range(0.1, 10.0));
  command.add_option("--leash-ms", shares->leash_ms, "Kernels launched ahead of the device")
      ->check(CLI::Range(0.0, 100.0));
  command.add_option("--gap-us", shares->gap_us, "Between two kernels of an instance, in which it does nothing")
      ->check(CLI::Range(0.0, 10'000.0));
  command.add_flag("--without-deadlines", shares->without_deadlines, "Schedulers are not told when requests are due");
  command
      .add_option("--reserve", shares->options.reserve_percent,
                  "Of delivered: per cent of the time kept back at admission")
      ->check(CLI::Range(0.0, 50.0));
  command.add_flag("--limit-is-request", shares->options.limit_is_request, "Nobody gets more than was requested");
  command.add_option(
      "--frames", shares->frames,
      "Only draw frames of the first scheduler on `reserved` into this file: a picture (.svg), or a trace that "
      "ui.perfetto.dev opens (.json)");
  command.add_option("--frames-ms", shares->frames_ms, "Of --frames: virtual milliseconds, after the warm-up")
      ->check(CLI::Range(1.0, 10'000.0));
  command.add_flag("--bursts", shares->options.bursts, "Requests come five at a time, at the same rate");
}

}  // namespace fairlead::cli
