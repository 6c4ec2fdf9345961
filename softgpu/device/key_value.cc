#include "softgpu/device/key_value.h"

#include <charconv>
#include <cstdint>

namespace softgpu {
namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace

Result<KeyValues> parse_key_values(std::string_view text) {
  KeyValues values;
  int number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    const std::string_view key = equals == std::string_view::npos ? std::string_view() : trim(line.substr(0, equals));
    if (key.empty()) return failure("line " + std::to_string(number) + ": expected `key = value`");
    if (!values.emplace(key, trim(line.substr(equals + 1))).second) {
      return failure("line " + std::to_string(number) + ": " + std::string(key) + " is given twice");
    }
  }
  return values;
}

Result<std::uint64_t> parse_number(std::string_view key, std::string_view text, std::uint64_t low, std::uint64_t high) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return failure(std::string(key) + " is '" + std::string(text) + "': expected a number between " +
                   std::to_string(low) + " and " + std::to_string(high));
  }
  return value;
}

}  // namespace softgpu
