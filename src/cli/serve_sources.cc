#include "cli/serve_sources.h"

#include <unistd.h>

#include <string_view>

#include "cli/config_file.h"
#include "cli/split.h"

namespace fairlead::cli {
std::map<std::string, std::string> serve_variables() {
  std::map<std::string, std::string> variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with(kServeVariablePrefix)) continue;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::vector<GivenSetting> given_by_variables(const std::map<std::string, std::string>& variables) {
  std::vector<GivenSetting> given;
  for (const ServeSetting& setting : serve_settings()) {
    for (const std::string& name : names_of(ServeSettings{setting})) {
      const auto found = variables.find(serve_variable(name));
      if (found == variables.end() || found->second.empty()) continue;
      given.push_back({name, {}});
      const auto texts = setting.is_list ? split(found->second, ',') : std::vector{found->second};
      for (const std::string& text : texts) given.back().values.push_back({text, found->first});
    }
  }
  return given;
}

std::vector<std::string> mistyped_variables(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> known;
  for (const std::string& name : names_of(serve_settings())) known.push_back(serve_variable(name));
  std::vector<std::string> warnings;
  for (const auto& [name, value] : variables) {
    const std::string nearest = nearest_word(name, known);
    if (nearest.empty() || nearest == name) continue;
    warnings.push_back(fmt::format("the variable {} is no setting and is not read{}", name, did_you_mean(name, known)));
  }
  return warnings;
}

Result<SettledSettings<ServeOptions>> settle(const ServeSources& sources) {
  std::vector<GivenSetting> file;
  if (!sources.config_path.empty()) {
    auto section = read_serve_section(sources.config_path, names_of(serve_settings()));
    if (!section) return fail(std::move(section.error()));
    file = *std::move(section);
  }
  auto settled = settle(serve_settings(), {file, given_by_variables(sources.variables), sources.command_line});
  if (!settled) return settled;
  if (Status together = check_together(settled->options); !together) return fail(together.error());
  return settled;
}

}  // namespace fairlead::cli
