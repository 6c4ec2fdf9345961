// "a,,b" at ',' -> {"a", "", "b"}; "" -> {""}.
#pragma once

#include <string>
#include <vector>

namespace fairlead::cli {

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace fairlead::cli
