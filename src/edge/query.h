// Numbers and flags of a request, checked.
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

// kInvalidArgument names it, its text and the bounds.
template <typename T>
Result<T> number_in(std::string_view name, std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
  return fail(Errc::kInvalidArgument, "{} is '{}'; it must be between {} and {}", name, text, least, most);
}

// `absent` without it.
template <typename T>
Result<T> query_number(const net::Target& target, std::string_view name, T absent, T least, T most) {
  const std::string_view text = target.query_value(name);
  return text.empty() ? Result<T>(absent) : number_in(name, text, least, most);
}

}  // namespace fairlead
