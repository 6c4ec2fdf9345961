#include <csignal>
#include <filesystem>
#include <ostream>

#include "cli/commands.h"
#include "cli/places.h"
#include "cli/serve_sources.h"
#include "cli/setting_options.h"
#include "runtime/device_server/cublas.h"

namespace fairlead::cli {
namespace {

std::string absolute(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).lexically_normal().string();
}

bool is_file(const std::string& cublas) {
  return cublas != "auto" && cublas != "off";
}

// Where things lie, so that it does not matter from where the node was started.
void complete(ServeOptions& options) {
  if (options.state_dir.empty()) options.state_dir = default_state_dir();
  options.state_dir = absolute(options.state_dir);
  if (!options.gpu_library_dir.empty()) options.gpu_library_dir = absolute(options.gpu_library_dir);
  if (is_file(options.cublas)) options.cublas = absolute(options.cublas);
}

Result<SettledSettings<ServeOptions>> completed(const ServeSources& sources) {
  auto settled = settle(sources);
  if (settled) complete(settled->options);
  return settled;
}

// Here, not in the first device server: that starts with the first task.
Status check_cublas(const ServeOptions& options) {
  if (!is_file(options.cublas)) return {};
  if (Status loaded = Cublas::check_library(options.cublas); !loaded) {
    return fail(Errc::kInvalidArgument, "--cublas: {}", loaded.error().message);
  }
  return {};
}

// What this installation has beside the program.
Status find_libraries(ServeOptions& options) {
  options.driver_dir = options.gpu_library_dir;
  if (options.software_gpu) {
    Result<std::string> folder = software_gpu_dir();
    if (!folder) return fail(folder.error());
    options.driver_dir = *std::move(folder);
  }
  if (Result<std::string> library = shim_library()) options.shim_library = *std::move(library);
  return {};
}

// What a node lacks to start is neither a function nor another node, which the other statuses are for.
int report_start(Cli& cli, const Error& error) {
  cli.report(error);
  return error.code == Errc::kInvalidArgument ? kUsage : kFailed;
}

int report_settings(Cli& cli, const Error& error) {
  cli.report(error);
  cli.err() << "Try 'fairlead serve --help'.\n";
  return kUsage;
}

int print(Cli& cli, const std::string& text) {
  cli.out() << text;
  return kOk;
}

// Reads the file again; the command line and the environment of a process do not change.
RereadSettings reread(const ServeSources& sources) {
  if (sources.config_path.empty()) return nullptr;
  return [sources]() -> Result<ServeOptions> {
    auto settled = completed(sources);
    if (!settled) return fail(std::move(settled.error()));
    return std::move(settled->options);
  };
}

struct ServeCommand {
  const CLI::App* parser = nullptr;
  bool prints_config = false, prints_page = false, prints_template = false;
};

int run_serve(Cli& cli, const ServeCommand& command, const Serve& serve) {
  std::signal(SIGHUP, SIG_IGN);  // until the node handles it: a library that is looked at below takes its time
  if (command.prints_page) return print(cli, settings_markdown());
  if (command.prints_template) return print(cli, config_template());
  ServeSources sources{.command_line = given_settings(*command.parser, serve_settings()),
                       .variables = serve_variables(),
                       .config_path = cli.config_path().empty() ? "" : absolute(cli.config_path())};
  for (const std::string& warning : mistyped_variables(sources.variables)) {
    cli.err() << "fairlead: " << warning << "\n";
  }
  auto settled = completed(sources);
  if (!settled) return report_settings(cli, settled.error());
  if (command.prints_config) return print(cli, cli.json() ? config_json(*settled) : config_text(*settled));
  ServeOptions& options = settled->options;
  if (Status cublas = check_cublas(options); !cublas) return report_start(cli, cublas.error());
  if (Status found = find_libraries(options); !found) return report_start(cli, found.error());
  return serve(options, reread(sources));
}

}  // namespace

void add_serve(Cli& cli, Serve serve) {
  auto self = std::make_shared<ServeCommand>();  // shared: the parser writes it, the command reads it
  CLI::App& command = cli.add_command("serve", "Run a node: functions, queues and GPUs of this machine",
                                      [&cli, self, serve = std::move(serve)] { return run_serve(cli, *self, serve); });
  self->parser = &command;
  command.add_flag("--print-config", self->prints_config,
                   "Print every setting with its value and where that stands, as a file for --config, and exit");
  command.add_flag("--print-template", self->prints_template,
                   "Print a file for --config in which every setting is explained and none is set, and exit");
  command.add_flag("--settings", self->prints_page,
                   "Print what each setting is, as docs/reference/settings.md has it, and exit");
  add_settings(command, serve_settings());
  command.footer(
      "Every setting can also stand in a file (--config FILE, section [serve], without the dashes) and in the "
      "environment "
      "(--over-run is FAIRLEAD_SERVE_OVER_RUN, --slots FAIRLEAD_SERVE_SLOTS). The command line wins over the "
      "environment, "
      "the environment over the file. SIGHUP reads the file again.");
}

}  // namespace fairlead::cli
