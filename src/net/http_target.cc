#include <cctype>

#include "net/http_server.h"

namespace fairlead::net {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return fail(Errc::kInvalidArgument, "request target: '{}' is not a percent escape of two hexadecimal digits",
                    text.substr(i, 3));
      }
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (c == '\0') return fail(Errc::kInvalidArgument, "request target: contains a NUL character");
    out.push_back(c);
  }
  return out;
}

Status add_query(std::string_view query, Target& target) {
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    auto name = percent_decode(pair.substr(0, equals), true);
    if (!name) return fail(name.error());
    auto value = percent_decode(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!value) return fail(value.error());
    target.query.emplace_back(std::move(*name), std::move(*value));
  }
  return {};
}

}  // namespace

std::string_view Target::query_value(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return {};
}

Result<Target> parse_target(std::string_view text) {
  Target target;
  const std::size_t question = text.find('?');
  std::string_view path = text.substr(0, question);
  if (path.empty() || path.front() != '/') {
    return fail(Errc::kInvalidArgument, "request target: '{}' does not begin with '/'", text.substr(0, 64));
  }
  path.remove_prefix(1);
  while (!path.empty()) {  // "/a/" and "/a" are the same: one trailing slash adds no segment
    const std::size_t slash = path.find('/');
    auto segment = percent_decode(path.substr(0, slash), false);
    if (!segment) return fail(segment.error());
    target.segments.push_back(std::move(*segment));
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  if (question != std::string_view::npos) {
    if (Status status = add_query(text.substr(question + 1), target); !status) return fail(status.error());
  }
  return target;
}

}  // namespace fairlead::net
