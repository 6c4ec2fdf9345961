#include <filesystem>

#include "cli/commands.h"
#include "cli/places.h"
#include "queueing/policy.h"

namespace fairlead::cli {
namespace {

std::vector<std::string> names_of_policies() {
  std::vector<std::string> names;
  for (std::string_view name : policy_names()) names.emplace_back(name);
  return names;
}

void add_scheduling_options(CLI::App& command, ServeOptions& options) {
  command.add_option("--policy", options.policy, "Which invocation is next")
      ->check(CLI::IsMember(names_of_policies()))
      ->group("Scheduling");
  command
      .add_option("--over-run", options.over_run_seconds,
                  "T: seconds of GPU service a function may be ahead of the slowest one before it waits")
      ->check(CLI::Range(0.0, 86400.0))
      ->group("Scheduling");
  command
      .add_option("--ttl-factor", options.ttl_factor,
                  "alpha: an idle function counts as active for alpha times its mean time between invocations")
      ->check(CLI::Range(0.0, 1000.0))
      ->group("Scheduling");
  command.add_option("--tokens", options.tokens_per_gpu, "D: invocations that run on one GPU at the same time")
      ->check(CLI::Range(1, 64))
      ->group("Scheduling");
  command.add_option("--pool", options.instances_per_gpu, "Instances kept on one GPU, warm ones included")
      ->check(CLI::Range(1, 1024))
      ->group("Scheduling");
  command
      .add_option("--queue-limit", options.queue_limit,
                  "Invocations that may wait on this node; more are refused as throttled")
      ->check(CLI::Range(1, 1'000'000))
      ->group("Scheduling");
}

void add_gpu_options(CLI::App& command, ServeOptions& options) {
  CLI::Option* software =
      command.add_flag("--softgpu", options.software_gpu, "Use the software GPU that comes with fairlead")
          ->group("GPU");
  command
      .add_option("--gpu-library-dir", options.gpu_library_dir,
                  "Folder with libcuda.so.1 and libnvidia-ml.so.1; without it the system's are used")
      ->check(CLI::ExistingDirectory)
      ->excludes(software)
      ->group("GPU");
}

int run_serve(Cli& cli, ServeOptions options, const Serve& serve) {
  std::error_code ignored;
  if (options.state_dir.empty()) options.state_dir = default_state_dir();
  options.state_dir = std::filesystem::absolute(options.state_dir, ignored).lexically_normal().string();
  if (!options.gpu_library_dir.empty()) {
    options.gpu_library_dir = std::filesystem::absolute(options.gpu_library_dir, ignored).lexically_normal().string();
  }
  if (options.software_gpu) {
    Result<std::string> folder = software_gpu_dir();
    if (!folder) return cli.report(folder.error());
    options.gpu_library_dir = *std::move(folder);
  }
  return serve(options);
}

}  // namespace

void add_serve(Cli& cli, Serve serve) {
  auto options = std::make_shared<ServeOptions>();  // shared: the parser writes it, the command reads it
  CLI::App& command =
      cli.add_command("serve", "Run a node: functions, queues and GPUs of this machine",
                      [&cli, options, serve = std::move(serve)] { return run_serve(cli, *options, serve); });
  command.option_defaults()->always_capture_default();
  command.add_option("--state", options->state_dir,
                     "Folder that holds functions, queued events and logs [" + default_state_dir() + "]");
  command.add_option("--listen", options->listen, "Address to answer at: HOST:PORT or unix:/PATH; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--drain", options->drain_seconds, "Seconds a graceful stop waits for running invocations")
      ->check(CLI::Range(0.0, 3600.0));
  command.add_option("--log-level", options->log_level, "What is logged to stderr")
      ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}));
  add_scheduling_options(command, *options);
  add_gpu_options(command, *options);
}

}  // namespace fairlead::cli
