// A table of settings (base/setting.h) as options of a command. The parser only takes the words; the table reads them.
#pragma once

#include <string>
#include <vector>

#include "base/setting.h"
#include "cli/cli.h"

namespace fairlead::cli {

// What help adds to what a setting does: its bound, where the form of its value does not show it.
template <typename Options>
std::string help_of(const Setting<Options>& setting) {
  const bool shows_it = setting.form.find('|') != std::string::npos;
  const bool is_bounded = setting.bound.find_first_of("0123456789") != std::string::npos;
  return shows_it || !is_bounded ? setting.help : setting.help + " (" + setting.bound + ")";
}

template <typename Options>
void add_settings(CLI::App& command, const SettingTable<Options>& table) {
  for (const Setting<Options>& setting : table) {
    std::string names = "--" + setting.name;
    for (const std::string& alias : setting.aliases) names += ",--" + alias;
    CLI::Option* option = setting.is_flag ? command.add_flag(names) : command.add_option(names);
    option->description(help_of(setting))->group(setting.group.empty() ? "Options" : setting.group);
    if (setting.is_flag) continue;
    // How often it may be given is the table's to say.
    option->type_name(setting.form)->default_str(setting.default_text());
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  }
}

inline constexpr const char* kCommandLine = "command line";

// What the command line said, after it was parsed. REQUIRES: add_settings(command, table).
template <typename Options>
std::vector<GivenSetting> given_settings(const CLI::App& command, const SettingTable<Options>& table) {
  std::vector<GivenSetting> given;
  for (const Setting<Options>& setting : table) {
    const CLI::Option* option = command.get_option("--" + setting.name);
    if (option->count() == 0) continue;
    given.push_back({setting.name, {}});
    for (const std::string& text : option->results()) given.back().values.push_back({text, kCommandLine});
  }
  return given;
}

}  // namespace fairlead::cli
