// Numbers and flags of a request's query, checked.
#pragma once

#include <charconv>
#include <string_view>

#include "base/result.h"
#include "net/http_server.h"

namespace fairlead {

inline bool has_query(const net::Target& target, std::string_view name) {
  for (const auto& [key, value] : target.query) {
    if (key == name) return true;
  }
  return false;
}

// `absent` without it. kInvalidArgument names it, its text and the bounds.
template <typename T>
Result<T> query_number(const net::Target& target, std::string_view name, T absent, T least, T most) {
  const std::string_view text = target.query_value(name);
  if (text.empty()) return absent;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
  return fail(Errc::kInvalidArgument, "{} is '{}'; it must be between {} and {}", name, text, least, most);
}

}  // namespace fairlead
