// Shell completion, generated from the command line itself: commands, their options, and the values of options that
// have a fixed set. It cannot go out of date.
#include <algorithm>
#include <map>
#include <ostream>

#include "cli/commands.h"
#include "cli/manual.h"

namespace fairlead::cli {
namespace {

struct Command {
  std::string name;  // "" is the program itself
  std::string description;
  std::vector<std::string> options;  // "--json"
  std::vector<std::string> actions;  // of a command that has some: "put"
  std::map<std::string, std::vector<std::string>>
      values;  // of options that have a fixed set: "--eviction", {"lru", "cost"}
};

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == by) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// Of "TEXT:{lambda,http}", and of "none|mps|mig" as the tables of settings have it; a word in capitals is no value.
std::vector<std::string> fixed_values(const CLI::Option& option) {
  const std::string form = option.get_type_name();
  const std::size_t open = form.find('{'), close = form.rfind('}');
  if (open != std::string::npos && close != std::string::npos)
    return split(form.substr(open + 1, close - open - 1), ',');
  if (form.find('|') == std::string::npos) return {};
  std::vector<std::string> values;
  for (const std::string& word : split(form, '|')) {
    const std::string value = word.substr(0, word.find('['));  // auto[:MAX]
    if (std::none_of(value.begin(), value.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) values.push_back(value);
  }
  return values;
}

void add_values(const CLI::App& app, Command& command) {
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string> values = fixed_values(*option);
    for (const std::string& name : option->get_lnames()) {
      if (!values.empty()) command.values["--" + name] = values;
    }
  }
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<Command> commands_of(const CLI::App& app) {
  const std::vector<std::string> common = option_names(app);
  std::vector<Command> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    Command command{sub->get_name(), sub->get_description(), option_names(*sub), {}, {}};
    add_values(*sub, command);
    for (const CLI::App* action : sub->get_subcommands([](const CLI::App*) { return true; })) {
      command.actions.push_back(action->get_name());
      add_values(*action, command);
      for (const std::string& option : option_names(*action)) command.options.push_back(option);
    }
    for (const std::string& option : common) {
      if (std::find(command.options.begin(), command.options.end(), option) == command.options.end()) {
        command.options.push_back(option);
      }
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// "    'serve --eviction') values='lru cost' ;;" for each option of each command.
std::string value_cases(const std::vector<Command>& commands, const char* assignment) {
  std::string cases;
  for (const Command& command : commands) {
    for (const auto& [option, values] : command.values) {
      cases += fmt::format("    '{} {}') {} ;;\n", command.name, option,
                           fmt::format(fmt::runtime(assignment), joined(values)));
    }
  }
  return cases;
}

std::string names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  return joined(names);
}

// Commands whose first argument is a function; completed with what the node knows.
constexpr const char* kTakesFunction = "describe|invoke|logs|remove|dead-letters";

std::string bash(const std::vector<Command>& commands) {
  std::string cases;
  for (const Command& command : commands) {
    cases += fmt::format("    {}) options='{}' actions='{}' ;;\n", command.name, joined(command.options),
                         joined(command.actions));
  }
  return fmt::format(R"sh(# bash completion for fairlead: source <(fairlead completion bash)
_fairlead() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= options= actions= values= i
  # In --name=value the sign is a word of its own.
  [[ $before == = ]] && before=${{COMP_WORDS[COMP_CWORD-2]}}
  [[ $word == = ]] && word=
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} == -* ]] || {{ command=${{COMP_WORDS[i]}}; break; }}
  done
  case $command in
    '') COMPREPLY=($(compgen -W '{0}' -- "$word")); return ;;
{1}  esac
  case "$command $before" in
{3}  esac
  if [[ -n $values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$word"))
    return
  fi
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    return
  fi
  if [[ -n $actions && ${{COMP_WORDS[COMP_CWORD-1]}} == "$command" ]]; then
    COMPREPLY=($(compgen -W "$actions" -- "$word"))
    return
  fi
  case $command in
    {2})
      COMPREPLY=($(compgen -W "$(fairlead list 2>/dev/null | awk 'NR > 1 {{print $1}}')" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -F _fairlead fairlead
)sh",
                     names_of(commands), cases, kTakesFunction, value_cases(commands, "values='{}'"));
}

// Inside single quotes of zsh and fish.
std::string quoted(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

std::string zsh(const std::vector<Command>& commands) {
  std::string list, cases, actions;
  for (const Command& command : commands) {
    if (!command.actions.empty()) {
      actions += fmt::format("      {}) (( CURRENT == 3 )) && {{ compadd -- {}; return }}; _files; return ;;\n",
                             command.name, joined(command.actions));
    }
    list += fmt::format("    '{}:{}'\n", command.name, quoted(command.description));
    cases += fmt::format("    {}) compadd -- {} ;;\n", command.name, joined(command.options));
  }
  return fmt::format(R"sh(#compdef fairlead
# zsh completion for fairlead: source <(fairlead completion zsh)
_fairlead() {{
  local -a commands=(
{0}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case "$words[2] $words[CURRENT-1]" in
{4}  esac
  if [[ $words[CURRENT] != -* ]]; then
    case $words[2] in
      {2}) compadd -- ${{(f)"$(fairlead list 2>/dev/null | awk 'NR > 1 {{print $1}}')"}}; return ;;
{3}      *) _files; return ;;
    esac
  fi
  case $words[2] in
{1}  esac
}}
compdef _fairlead fairlead
)sh",
                     list, cases, kTakesFunction, actions, value_cases(commands, "compadd -- {}; return"));
}

std::string fish(const std::vector<Command>& commands) {
  std::string out = "# fish completion for fairlead: fairlead completion fish | source\n";
  for (const Command& command : commands) {
    out += fmt::format("complete -c fairlead -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                       quoted(command.description));
    if (!command.actions.empty()) {
      out += fmt::format("complete -c fairlead -n '__fish_seen_subcommand_from {}' -a '{}'\n", command.name,
                         joined(command.actions));
    }
    for (const std::string& option : command.options) {
      const bool is_long = option.starts_with("--");
      const auto values = command.values.find(option);
      out += fmt::format("complete -c fairlead -n '__fish_seen_subcommand_from {}' -{} {}{}\n", command.name,
                         is_long ? "l" : "s", option.substr(is_long ? 2 : 1),
                         values == command.values.end() ? "" : fmt::format(" -xa '{}'", joined(values->second)));
    }
  }
  return out;
}

}  // namespace

void add_completion(Cli& cli) {
  add_manual(cli);
  auto shell = std::make_shared<std::string>();
  cli.add_command("completion", "Print completion for a shell: source <(fairlead completion bash)",
                  [&cli, shell]() -> int {
                    const std::vector<Command> commands = commands_of(cli.app());
                    if (*shell == "bash") cli.out() << bash(commands);
                    if (*shell == "zsh") cli.out() << zsh(commands);
                    if (*shell == "fish") cli.out() << fish(commands);
                    return kOk;
                  })
      .add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

}  // namespace fairlead::cli
