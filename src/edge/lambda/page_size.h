// MaxItems of what is listed page by page.
#pragma once

#include <charconv>
#include <string_view>

#include "base/result.h"

namespace fairlead {

// kInvalidArgument names the value and the bounds.
inline Result<int> page_size(std::string_view text) {
  constexpr int kDefaultPage = 50;
  constexpr int kMaxPage = 10'000;
  if (text.empty()) return kDefaultPage;
  int size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error == std::errc() && end == text.data() + text.size() && size >= 1 && size <= kMaxPage) return size;
  return fail(Errc::kInvalidArgument, "MaxItems is '{}'; it must be between 1 and {}", text, kMaxPage);
}

}  // namespace fairlead
