// What `fairlead serve` says of its settings: their values and where those stand, and the page about them.
#include <fmt/format.h>

#include <algorithm>

#include "cli/serve_sources.h"
#include "nlohmann/json.hpp"

namespace fairlead::cli {
namespace {

using Settled = SettledSettings<ServeOptions>;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string toml_value(const ServeSetting& setting, const std::vector<std::string>& texts) {
  if (setting.is_flag) return texts.front();
  if (!setting.is_list) return quoted(texts.front());
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + quoted(text);
  return "[" + list + "]";
}

std::string config_line(const ServeSetting& setting, const Settled& settled) {
  const std::vector<std::string> texts = setting.write(settled.options);
  const auto origin = settled.origins.find(setting.name);
  if (origin == settled.origins.end()) {
    const std::string value = texts.empty() ? "" : " = " + toml_value(setting, texts);
    const bool says_more = texts.empty() || !setting.default_words.empty();
    return fmt::format("# {}{}  # default{}\n", setting.name, value, says_more ? ": " + setting.default_text() : "");
  }
  if (texts.empty() && !setting.is_list) return fmt::format("{} = \"\"  # {}\n", setting.name, origin->second);
  return fmt::format("{} = {}  # {}\n", setting.name, toml_value(setting, texts), origin->second);
}

// One whose value depends on the machine, or that has none, is named without a value.
std::string template_line(const ServeSetting& setting) {
  const std::vector<std::string> texts = setting.write(ServeOptions());
  const bool is_known = setting.default_words.empty() && !texts.empty();
  return fmt::format("# {} = {}\n", setting.name, is_known ? toml_value(setting, texts) : "");
}

// In a cell of a table.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string live_text(const ServeSetting& setting) {
  if (!setting.can_live) return "restart";
  return setting.live_words.empty() ? "reload" : "reload " + setting.live_words;
}

std::string name_cell(const ServeSetting& setting) {
  std::string names = "`" + setting.name + "`";
  for (const std::string& alias : setting.aliases) names += ", `" + alias + "`";
  return names;
}

}  // namespace

std::string config_text(const Settled& settled) {
  std::string text = "[serve]\n";
  for (const ServeSetting& setting : serve_settings()) text += config_line(setting, settled);
  return text;
}

std::string config_template() {
  std::string text =
      "# Settings of a node, each with its default. `fairlead serve --config FILE --print-config` checks the "
      "file.\n[serve]\n";
  for (const ServeSetting& setting : serve_settings()) {
    text += fmt::format("\n# {}\n# May be: {}.", setting.help, setting.bound);
    if (const std::string words = setting.default_words; !words.empty()) text += fmt::format(" Default: {}.", words);
    text += fmt::format(" A new value needs a {}.\n{}", live_text(setting), template_line(setting));
  }
  return text;
}

std::string config_json(const Settled& settled) {
  nlohmann::ordered_json all;
  for (const ServeSetting& setting : serve_settings()) {
    const std::vector<std::string> texts = setting.write(settled.options);
    const auto origin = settled.origins.find(setting.name);
    auto& entry = all[setting.name];
    entry["value"] = nullptr;
    if (setting.is_list) {
      entry["value"] = texts;
    } else if (!texts.empty()) {
      entry["value"] = texts.front();
    }
    entry["origin"] = origin == settled.origins.end() ? "default" : origin->second;
  }
  return nlohmann::ordered_json{{"serve", all}}.dump(2) + "\n";
}

std::string settings_markdown() {
  std::string text, group;
  for (const ServeSetting& setting : serve_settings()) {
    if (setting.group != group) {
      group = setting.group;
      text += fmt::format(
          "{}### {}\n| name | what it does | may be | default | a new value needs a |\n"
          "| --- | --- | --- | --- | --- |\n",
          text.empty() ? "" : "\n", group);
    }
    text += fmt::format("| {} | {} | {} | {} | {} |\n", name_cell(setting), cell(setting.help), cell(setting.bound),
                        cell(setting.default_text()), live_text(setting));
  }
  return text;
}

}  // namespace fairlead::cli
