// The manual page, written from the command line itself: what `--help` says of the program and of each command, as one page
// for man(1). There is no second text that could say something else. Packages are made with it: `fairlead manual`.
#include "cli/manual.h"

#include <ostream>

#include "cli/version.h"

namespace fairlead::cli {
namespace {

// As roff shows it: a line that begins with a dot or an apostrophe would be a request, a hyphen a typographic one.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool begins_line = out.empty() || out.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else {
      out += c == '-' ? "\\-" : std::string(1, c);
    }
  }
  return out;
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* one) { return !one->get_group().empty(); });
}

// "deploy [OPTIONS] NAME [FOLDER]"
std::string synopsis(const CLI::App& app, const std::string& name) {
  std::string text = name + " [OPTIONS]";
  for (const CLI::Option* option : shown_options(app)) {
    if (option->nonpositional()) continue;
    text += option->get_required() ? " " + option->get_name() : " [" + option->get_name() + "]";
  }
  return shown_commands(app).empty() ? text : text + " COMMAND";
}

// What the help says behind an option's name: " INT:INT in [1 - 900]=3 REQUIRED".
std::string value_text(const CLI::Option& option) {
  static const CLI::Formatter formatter;
  return formatter.make_option_opts(&option);
}

std::string options_text(const CLI::App& app) {
  std::string text, group;
  for (const CLI::Option* option : shown_options(app)) {
    if (option->nonpositional() && option->get_group() != group) {
      group = option->get_group();
      text += ".PP\n" + roff(group) + ":\n";
    }
    const std::string name = option->get_name(/*positional=*/!option->nonpositional(), /*all_options=*/true);
    text +=
        fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(name), roff(value_text(*option)), roff(option->get_description()));
  }
  return text;
}

std::string command_text(const CLI::App& command, const std::string& name) {
  std::string text = fmt::format(".SS {}\n{}.\n{}", roff(synopsis(command, name)), roff(command.get_description()),
                                 options_text(command));
  if (!command.get_footer().empty()) text += ".PP\n" + roff(command.get_footer()) + "\n";
  for (const CLI::App* below : shown_commands(command)) text += command_text(*below, name + " " + below->get_name());
  return text;
}

std::string manual(const CLI::App& app) {
  std::string text = fmt::format(
      ".TH FAIRLEAD 1 \"\" \"{}\" Fairlead\n.SH NAME\nfairlead \\- serverless functions on shared GPUs\n"
      ".SH SYNOPSIS\n\\fBfairlead\\fR [OPTIONS] COMMAND\n.SH OPTIONS\n{}.SH COMMANDS\n",
      roff(version_text()), options_text(app));
  for (const CLI::App* command : shown_commands(app)) text += command_text(*command, "fairlead " + command->get_name());
  return text + ".SH EXIT STATUS\n" + roff(app.get_footer()) + "\n";
}

}  // namespace

void add_manual(Cli& cli) {
  cli.add_command("manual", "Print the manual page: fairlead manual | man -l -",
                  [&cli]() -> int {
                    cli.out() << manual(cli.app());
                    return kOk;
                  })
      .group("");
}

}  // namespace fairlead::cli
