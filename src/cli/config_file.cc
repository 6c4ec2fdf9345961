#include "cli/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/read_file.h"
#include "base/spelling.h"
#include "base/toml.h"

namespace fairlead::cli {
namespace {

constexpr std::string_view kSection = "serve";

std::string place(const std::string& path, const toml::source_region& source) {
  return fmt::format("{}:{}", path, source.begin.line);
}

// As it would be written on the command line; empty: it is none of the types that a setting can have.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* boolean = node.as_boolean()) return std::string(boolean->get() ? "true" : "false");
  return std::nullopt;
}

Result<std::vector<GivenValue>> values_of(const std::string& name, const toml::node& node, const std::string& path) {
  std::vector<GivenValue> values;
  const auto add = [&](const toml::node& one) -> Status {
    auto text = scalar_text(one);
    if (!text) {
      return fail(Errc::kInvalidArgument, "{}: {} must be a text, a number, true or false, or a list of them",
                  place(path, one.source()), name);
    }
    values.push_back({*std::move(text), place(path, one.source())});
    return {};
  };
  const toml::array* list = node.as_array();
  if (list == nullptr) {
    if (Status added = add(node); !added) return fail(added.error());
    return values;
  }
  for (const toml::node& one : *list) {
    if (Status added = add(one); !added) return fail(added.error());
  }
  return values;
}

void add_items(const toml::table& table, std::vector<std::string>& parents, const std::string& path,
               std::vector<CLI::ConfigItem>& items) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (parents.empty() && name == kSection) continue;
    if (const toml::table* inner = node.as_table()) {
      parents.push_back(name);
      add_items(*inner, parents, path, items);
      parents.pop_back();
      continue;
    }
    const auto values = values_of(name, node, path);
    if (!values) throw CLI::ConfigError(values.error().message, CLI::ExitCodes::ConfigError);
    items.emplace_back();
    items.back().parents = parents;
    items.back().name = name;
    for (const GivenValue& value : *values) items.back().inputs.push_back(value.text);
  }
}

bool is_in_environment(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw("--" + name);
  const char* value =
      option == nullptr || option->get_envname().empty() ? nullptr : std::getenv(option->get_envname().c_str());
  return value != nullptr && *value != '\0';
}

}  // namespace

Result<std::vector<GivenSetting>> parse_serve_section(std::string_view text, const std::string& path,
                                                      const std::vector<std::string>& known) {
  const auto table = parse_toml(text, path);
  if (!table) return fail(table.error());
  std::vector<GivenSetting> given;
  const toml::node* section = table->get(kSection);
  if (section == nullptr) return given;
  if (!section->is_table()) {
    return fail(Errc::kInvalidArgument, "{}: {} must be a section, [serve]", place(path, section->source()), kSection);
  }
  for (const auto& [key, node] : *section->as_table()) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return fail(Errc::kInvalidArgument, "{}: '{}' is no setting of [serve]{}", place(path, key.source()), name,
                  did_you_mean(name, known));
    }
    auto values = values_of(name, node, path);
    if (!values) return fail(values.error());
    given.push_back({name, *std::move(values)});
  }
  return given;
}

Result<std::vector<GivenSetting>> read_serve_section(const std::string& path, const std::vector<std::string>& known) {
  const auto text = read_whole_file(path);
  if (!text) return fail(text.error());
  return parse_serve_section(*text, path, known);
}

// Not from the stream: a folder that is opened as one throws when it is read.
std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream&) const {
  const std::string path = app_.get_config_ptr()->results().back();
  const auto text = read_whole_file(path);
  if (!text) throw CLI::ConfigError(text.error().message, CLI::ExitCodes::FileError);
  const auto table = parse_toml(*text, path);
  if (!table) throw CLI::ConfigError(table.error().message, CLI::ExitCodes::ConfigError);
  std::vector<CLI::ConfigItem> said;
  std::vector<std::string> parents;
  add_items(*table, parents, path, said);
  std::erase_if(
      said, [this](const CLI::ConfigItem& item) { return item.parents.empty() && is_in_environment(app_, item.name); });
  return said;
}

}  // namespace fairlead::cli
