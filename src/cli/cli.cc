#include "cli/cli.h"

#include <algorithm>
#include <ostream>

namespace fairlead::cli {

Cli::Cli(std::istream& in, std::ostream& out, std::ostream& err)
    : in_(in), out_(out), err_(err), app_("Fairlead: serverless functions on shared GPUs", "fairlead") {
  app_.require_subcommand(1);
  app_.fallthrough();  // the options below work before and after the command
  app_.get_formatter()->column_width(34);
  app_.add_option("--endpoint", endpoint_, "Node to talk to: http://HOST:PORT or unix:/PATH")
      ->envname("FAIRLEAD_ENDPOINT")
      ->capture_default_str();
  app_.add_flag("--json", json_, "Print JSON instead of text");
  app_.set_config("--config", "", "TOML file with defaults for these options; those of serve in a section [serve]");
  app_.allow_config_extras(CLI::config_extras_mode::error);
  app_.footer(kExitStatusHelp);
}

CLI::App& Cli::add_command(const std::string& name, const std::string& description, std::function<int()> run) {
  return add_command(app_, name, description, std::move(run));
}

CLI::App& Cli::add_command(CLI::App& parent, const std::string& name, const std::string& description,
                           std::function<int()> run) {
  CLI::App* command = parent.add_subcommand(name, description);
  commands_[command] = std::move(run);
  return *command;
}

CLI::App& Cli::add_group(const std::string& name, const std::string& description) {
  CLI::App* group = app_.add_subcommand(name, description);
  group->require_subcommand(1);
  return *group;
}

int Cli::run(std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  try {
    app_.parse(args);
  } catch (const CLI::ParseError& error) {
    return report_usage(error);
  }
  const CLI::App* chosen = app_.get_subcommands().front();
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  return commands_.at(chosen)();
}

int Cli::report_usage(const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {  // --help
    app_.exit(error, out_, err_);
    return kOk;
  }
  const std::vector<CLI::App*> chosen = app_.get_subcommands();
  const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
  err_ << "fairlead: " << error.what() << "\nTry 'fairlead" << command << " --help'.\n";
  return kUsage;
}

NodeClient& Cli::node() {
  if (!node_) node_ = std::make_unique<NodeClient>(endpoint_);
  return *node_;
}

int Cli::report(const Error& error) {
  err_ << "fairlead: " << error.message << "\n";
  return exit_status(error.code);
}

}  // namespace fairlead::cli
