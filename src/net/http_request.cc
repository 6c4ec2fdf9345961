#include "net/http_request.h"

#include <algorithm>

namespace fairlead::net {

namespace {

constexpr std::size_t kKeptCapacity = 4 << 10;  // of each slot of a connection, idle ones too

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

void clear_string(std::string& s) {
  if (s.capacity() > kKeptCapacity) {
    std::string().swap(s);
  } else {
    s.clear();
  }
}

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return x == y || lower(x) == lower(y); });
}

std::string_view ParsedRequest::header(std::string_view name) const {
  for (const Field& field : fields) {
    if (equals_ignoring_case(view(field.name), name)) return view(field.value);
  }
  return {};
}

ParsedRequest::Span ParsedRequest::append(std::string_view part) {
  const Span span{static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(part.size())};
  text.append(part);
  return span;
}

void ParsedRequest::forget() {
  constexpr std::size_t kFewFields = 32;
  clear_string(text);
  clear_string(body);
  fields.clear();
  if (fields.capacity() > kFewFields) std::vector<Field>().swap(fields);
  method = target = {};
}

void ParsedRequest::clear() {
  forget();
  sink.reset();
  is_thrown_away = false;
  keep_alive = true;
  is_http10 = false;
  expects_continue = false;
}

}  // namespace fairlead::net
