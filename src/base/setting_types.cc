#include "base/setting_types.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <limits>

namespace fairlead {
namespace {

constexpr std::string_view kUnits = "kmgtpe";  // each 1024 of the one before
constexpr unsigned kBitsOfUnit = 10;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// "", "b", "k", "kb", "ki", "kib", ...: by how many bits it multiplies; empty: it is no unit.
std::optional<unsigned> bits_of(const std::string& unit) {
  if (unit.empty() || unit == "b") return 0;
  const std::size_t place = kUnits.find(unit.front());
  const std::string rest = unit.substr(1);
  if (place == std::string_view::npos || (!rest.empty() && rest != "b" && rest != "i" && rest != "ib")) return {};
  return static_cast<unsigned>(place + 1) * kBitsOfUnit;
}

std::string bound_of(const SizeBounds& bounds) {
  const std::string none = bounds.or_none ? "0, or " : "";
  if (bounds.least == 0) return fmt::format("{}a size up to {}, for example 8GiB", none, size_text(bounds.most));
  return fmt::format("{}a size from {} to {}", none, size_text(bounds.least), size_text(bounds.most));
}

}  // namespace

std::optional<std::uint64_t> size_from(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number =
      bounded_number<std::uint64_t>(text.substr(0, digits), 0, std::numeric_limits<std::uint64_t>::max());
  std::string_view unit = text.substr(digits);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto bits = bits_of(lower(unit));
  if (!number || !bits) return std::nullopt;
  if (*number > std::numeric_limits<std::uint64_t>::max() >> *bits) return std::nullopt;
  return *number << *bits;
}

std::string size_text(std::uint64_t bytes) {
  unsigned unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{}", bytes);
  return fmt::format("{}{}iB", bytes, static_cast<char>(std::toupper(kUnits[unit - 1])));
}

SettingType<std::uint64_t> size_in(const SizeBounds& bounds) {
  const std::string bound = bound_of(bounds);
  return {.form = "SIZE",
          .bound = bound,
          .read = [=](const std::string& text) -> Result<std::uint64_t> {
            const auto bytes = size_from(text);
            const bool is_none = bounds.or_none && bytes == 0u;
            if (!bytes || (!is_none && (*bytes < bounds.least || *bytes > bounds.most))) return out_of_bound(bound);
            return *bytes;
          },
          .write = [](const std::uint64_t& bytes) { return size_text(bytes); }};
}

SettingType<double> seconds_number(double least, double most) {
  SettingType<double> type = number_in("a number of seconds", least, most);
  type.form = "SECONDS";
  return type;
}

SettingType<double> factor_number(double least, double most) {
  return number_in("a number", least, most);
}

SettingType<bool> yes_or_no() {
  static constexpr std::array<std::string_view, 4> kYes{"true", "yes", "on", "1"}, kNo{"false", "no", "off", "0"};
  const std::string bound = "true or false";
  return {.form = "",
          .bound = bound,
          .read = [=](const std::string& text) -> Result<bool> {
            const std::string word = lower(text);
            if (std::find(kYes.begin(), kYes.end(), word) != kYes.end()) return true;
            if (std::find(kNo.begin(), kNo.end(), word) != kNo.end()) return false;
            return out_of_bound(bound);
          },
          .write = [](const bool& value) { return value ? "true" : "false"; }};
}

SettingType<std::string> any_text(std::string form, std::string bound) {
  return {.form = std::move(form),
          .bound = std::move(bound),
          .read = [](const std::string& text) -> Result<std::string> { return text; },
          .write = [](const std::string& text) { return text; }};
}

SettingType<std::string> existing_folder() {
  SettingType<std::string> type = any_text("FOLDER", "a folder that exists");
  type.read = [bound = type.bound](const std::string& text) -> Result<std::string> {
    std::error_code ignored;
    if (!std::filesystem::is_directory(text, ignored)) return out_of_bound(bound);
    return text;
  };
  return type;
}

SettingType<std::string> one_of(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& word : words) pairs.emplace_back(word, word);
  return one_of(std::move(pairs));
}

}  // namespace fairlead
