#include "store/http_part.h"

#include <algorithm>

namespace fairlead::store {
namespace {

constexpr std::string_view kBetween = ": ";

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::string http_text(const std::optional<HttpPart>& http) {
  if (!http) return {};
  std::string text = http->method + '\n' + http->path + '\n';
  for (const auto& [name, value] : http->headers) text.append(name).append(kBetween).append(value).append("\n");
  return text;
}

std::optional<HttpPart> http_part(std::string_view text) {
  if (text.empty()) return std::nullopt;
  HttpPart http;
  http.method = take_line(text);
  http.path = take_line(text);
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t between = std::min(line.find(kBetween), line.size());
    const std::size_t value = std::min(between + kBetween.size(), line.size());
    http.headers.emplace_back(line.substr(0, between), line.substr(value));
  }
  return http;
}

}  // namespace fairlead::store
