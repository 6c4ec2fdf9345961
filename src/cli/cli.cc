#include "cli/cli.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "base/spelling.h"
#include "cli/config_file.h"
#include "cli/version.h"

namespace fairlead::cli {
namespace {

// The first word that is neither an option nor the value of one of those that come before the command.
std::string first_word(const std::vector<std::string>& args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (!word.starts_with('-')) return word;
    if (word == "--endpoint" || word == "--config") ++i;
  }
  return "";
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

bool is_command(const CLI::App& app, const std::string& word) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* one) { return one->get_name() == word; });
}

// What to say of a command that there is none of.
std::string no_such_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return "fairlead: '" + word + "' is no command" + did_you_mean(word, names) + "\nTry 'fairlead --help'.\n";
}

}  // namespace

Cli::Cli(std::istream& in, std::ostream& out, std::ostream& err)
    : in_(in), out_(out), err_(err), app_("Fairlead: serverless functions on shared GPUs", "fairlead") {
  app_.require_subcommand(1);
  app_.fallthrough();  // the options below work before and after the command
  app_.get_formatter()->column_width(34);
  app_.add_option("--endpoint", endpoint_, "Node to talk to: http://HOST:PORT or unix:/PATH")
      ->envname("FAIRLEAD_ENDPOINT")
      ->capture_default_str();
  app_.add_flag("--json", json_, "Print JSON instead of text");
  app_.set_version_flag("--version", version_text(), "Print the version and exit");
  app_.set_config("--config", "",
                  "TOML file with values for these options; the settings of a node in a section [serve]");
  app_.config_formatter(std::make_shared<ConfigFile>(app_));
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
  const std::string word = first_word(args);
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  try {
    app_.parse(args);
  } catch (const CLI::ParseError& error) {
    const bool is_mistake = error.get_exit_code() != 0 && !word.empty() && !is_command(app_, word);
    if (!is_mistake) return report_usage(error);
    err_ << no_such_command(app_, word);
    return kUsage;
  }
  const CLI::App* chosen = app_.get_subcommands().front();
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  return commands_.at(chosen)();
}

int Cli::report_usage(const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {  // --help, --version
    app_.exit(error, out_, err_);
    return kOk;
  }
  const std::vector<CLI::App*> chosen = app_.get_subcommands();
  const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
  err_ << "fairlead: " << error.what() << "\nTry 'fairlead" << command << " --help'.\n";
  return kUsage;
}

std::string Cli::config_path() const {
  const CLI::Option* option = app_.get_config_ptr();
  return option->count() == 0 ? "" : option->results().back();
}

const std::string& Cli::endpoint() {
  if (app_.get_option("--endpoint")->count() == 0 && !is_endpoint_settled_) endpoint_ = nearest_endpoint(endpoint_);
  is_endpoint_settled_ = true;
  return endpoint_;
}

NodeClient& Cli::node() {
  endpoint();
  if (!node_) node_ = std::make_unique<NodeClient>(endpoint_, token_for(endpoint_));
  return *node_;
}

int Cli::report(const Error& error) {
  err_ << "fairlead: " << error.message << "\n";
  return exit_status(error.code);
}

}  // namespace fairlead::cli
