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

// "--gpu-memroy" or "-x", without what is behind "=".
std::string option_name(const std::string& word) {
  return word.substr(0, word.find('='));
}

// Names of the command's options, and of those above it.
std::vector<std::string> options_of(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

// Of options that there are none of. What is behind "--" was meant as it stands.
std::string unknown_option(const CLI::App* chosen, const std::vector<std::string>& args) {
  const std::vector<std::string> known = options_of(chosen);
  for (const std::string& word : args) {
    if (word == "--") break;
    const std::string name = option_name(word);
    if (!name.starts_with("--") || std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (const std::string near = did_you_mean(name, known); !near.empty()) return "'" + name + "' is no option" + near;
  }
  return "";
}

// "secret pt": what stands where an action of a group should.
std::string unknown_action(const CLI::App* chosen, const std::string& group, const std::vector<std::string>& args) {
  std::vector<std::string> actions;
  for (const CLI::App* action : commands_of(*chosen)) actions.push_back(action->get_name());
  const auto at = std::find(args.begin(), args.end(), group);
  if (actions.empty() || at == args.end() || at + 1 == args.end() || (at + 1)->starts_with('-')) return "";
  if (is_command(*chosen, *(at + 1))) return "";
  return "'" + group + " " + *(at + 1) + "' is no command" + did_you_mean(*(at + 1), actions);
}

// "": nothing is better than what the parser says.
std::string hint_for(const CLI::App& app, const std::string& word, const std::vector<std::string>& args) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  const bool is_group = chosen != &app && chosen->get_parent() == &app && chosen->get_require_subcommand_min() > 0;
  std::string said = is_group ? unknown_action(chosen, word, args) : "";
  if (said.empty()) said = unknown_option(chosen, args);
  return said.empty() ? ""
                      : "fairlead: " + said + "\nTry 'fairlead " + (chosen == &app ? "" : word + " ") + "--help'.\n";
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
  const std::vector<std::string> given = args;
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  try {
    app_.parse(args);
  } catch (const CLI::ParseError& error) {
    const bool is_mistake = error.get_exit_code() != 0 && !word.empty() && !is_command(app_, word);
    if (is_mistake) {
      // What is behind a mistyped option may be its value.
      const std::string option = unknown_option(&app_, {given.begin(), std::find(given.begin(), given.end(), word)});
      err_ << (option.empty() ? no_such_command(app_, word) : "fairlead: " + option + "\nTry 'fairlead --help'.\n");
      return kUsage;
    }
    const std::string hint = error.get_exit_code() == 0 ? "" : hint_for(app_, word, given);
    if (hint.empty()) return report_usage(error);
    err_ << hint;
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
