#include "edge/native/byte_range.h"

#include <algorithm>
#include <charconv>

namespace fairlead {
namespace {

constexpr std::string_view kUnit = "bytes=";

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<std::optional<ByteRange>> byte_range(std::string_view header, std::uint64_t total, std::uint64_t most) {
  const std::size_t dash = header.find('-');
  if (!header.starts_with(kUnit) || dash == std::string_view::npos || total == 0) return std::nullopt;
  const std::string_view from = header.substr(kUnit.size(), dash - kUnit.size()), to = header.substr(dash + 1);
  const auto first = number(from), last = number(to);
  if (from.empty()) {
    if (!last || *last == 0) return std::nullopt;
    const std::uint64_t bytes = std::min(*last, total);
    return ByteRange{total - bytes, std::min(bytes, most)};
  }
  if (!first || (!to.empty() && (!last || *last < *first))) return std::nullopt;
  if (*first >= total) {
    return fail(Errc::kInvalidArgument, "Range is '{}'; there are {} bytes", header.substr(0, 64), total);
  }
  const std::uint64_t end = last ? std::min(*last, total - 1) : total - 1;
  return ByteRange{*first, std::min(end - *first + 1, most)};
}

}  // namespace fairlead
