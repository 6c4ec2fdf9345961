#include "base/json_bounds.h"

namespace fairlead {
namespace {

// Behind the string that begins before `at`. A quote ends a string unless an odd number of backslashes stands before it.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  while (true) {
    const std::size_t quote = text.find('"', at);
    if (quote == std::string_view::npos) return text.size();
    std::size_t backslashes = 0;
    while (quote - backslashes > at && text[quote - backslashes - 1] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return quote + 1;
    at = quote + 1;
  }
}

}  // namespace

Status check_json_bounds(std::string_view text, std::string_view what, const JsonBounds& bounds) {
  std::size_t depth = 0, values = 1;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(text, at + 1) - 1;
    } else if (c == '{' || c == '[') {
      ++values;
      if (++depth > bounds.depth) {
        return fail(Errc::kInvalidArgument, "{}: it is nested deeper than {} levels", what, bounds.depth);
      }
    } else if (c == '}' || c == ']') {
      depth -= depth > 0 ? 1 : 0;
    } else if (c == ',' || c == ':') {
      ++values;
    }
    if (values > bounds.values) {
      return fail(Errc::kInvalidArgument, "{}: it has more than {} values; at most so many are possible", what,
                  bounds.values);
    }
  }
  return {};
}

}  // namespace fairlead
