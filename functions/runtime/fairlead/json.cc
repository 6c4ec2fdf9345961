#include "fairlead/json.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "fairlead/error.h"

namespace fairlead {
namespace {

[[noreturn]] void invalid_parameter(std::string_view name, std::string_view value, const std::string& bound) {
  throw Error("Runtime.InvalidParameter",
              "parameter \"" + std::string(name) + "\" is " + std::string(value) + "; " + bound);
}

std::string range_text(Parameters::Range range) {
  return std::to_string(range.min) + " to " + std::to_string(range.max);
}

void append_utf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

}  // namespace

class Parameters::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<Member> parse() {
    std::vector<Member> members;
    skip_space();
    if (at_end()) return members;
    if (take_word("null")) return finish(std::move(members));
    expect('{', "an object of parameters, {\"name\": value, ...}");
    skip_space();
    if (take('}')) return finish(std::move(members));
    do {
      skip_space();
      Member member;
      member.name = string();
      skip_space();
      expect(':', "':' after a parameter's name");
      skip_space();
      value(member);
      members.push_back(std::move(member));
      skip_space();
    } while (take(','));
    expect('}', "',' or '}' after a parameter");
    return finish(std::move(members));
  }

 private:
  std::vector<Member> finish(std::vector<Member> members) {
    skip_space();
    if (!at_end()) fail("nothing after the object");
    return members;
  }

  void value(Member& member) {
    const std::size_t begin = at_;
    if (peek() == '"') {
      member.kind = Kind::kString;
      member.value = string();
    } else if (take_word("true") || take_word("false")) {
      member.kind = Kind::kBoolean;
      member.value = text_.substr(begin, at_ - begin);
    } else if (take_word("null")) {
      member.kind = Kind::kNull;
      member.value = "null";
    } else {
      member.kind = Kind::kNumber;
      member.value = number();
    }
  }

  std::string number() {
    const std::size_t begin = at_;
    double parsed = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), parsed);
    if (error != std::errc()) fail("a number, string, boolean or null (values are not nested)");
    at_ = static_cast<std::size_t>(end - text_.data());
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string string() {
    expect('"', "a string in quotes");
    std::string out;
    while (!take('"')) {
      const char c = next();
      if (c == '\\') {
        escape(out);
      } else {
        out += c;
      }
    }
    return out;
  }

  void escape(std::string& out) {
    switch (const char c = next()) {
      case 'b': out += '\b'; return;
      case 'f': out += '\f'; return;
      case 'n': out += '\n'; return;
      case 'r': out += '\r'; return;
      case 't': out += '\t'; return;
      case 'u': return append_utf8(out, code_point());
      case '"':
      case '\\':
      case '/': out += c; return;
      default: fail("a known escape after '\\'");
    }
  }

  unsigned code_point() {
    const unsigned high = hex4();
    if (high < 0xd800 || high > 0xdbff) return high;
    if (next() != '\\' || next() != 'u') fail("the second half of a surrogate pair");
    const unsigned low = hex4();
    if (low < 0xdc00 || low > 0xdfff) fail("the second half of a surrogate pair");
    return 0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00);
  }

  unsigned hex4() {
    unsigned code = 0;
    if (text_.size() - at_ < 4) fail("four hexadecimal digits");
    const char* begin = text_.data() + at_;
    if (std::from_chars(begin, begin + 4, code, 16).ptr != begin + 4) fail("four hexadecimal digits");
    at_ += 4;
    return code;
  }

  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  char next() {
    if (at_end()) fail("more text");
    return text_[at_++];
  }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(char c, const char* what) {
    if (!take(c)) fail(what);
  }
  void skip_space() {
    while (!at_end() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  [[noreturn]] void fail(const char* expected) const {
    throw Error("Runtime.InvalidJson",
                "payload is not a flat JSON object: at byte " + std::to_string(at_) + " there should be " + expected);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Parameters::Parameters(std::string_view json) : members_(Parser(json).parse()) {}

const Parameters::Member* Parameters::use(std::string_view name) {
  Member* found = nullptr;
  for (Member& member : members_) {
    if (member.name != name) continue;
    member.used = true;
    found = &member;  // the last one wins, as in every JSON library
  }
  return found != nullptr && found->kind != Kind::kNull ? found : nullptr;
}

std::int64_t Parameters::integer(std::string_view name, std::int64_t fallback, Range range) {
  const Member* member = use(name);
  if (member == nullptr) return fallback;
  double value = 0;
  std::from_chars(member->value.data(), member->value.data() + member->value.size(), value);
  const bool whole = member->kind == Kind::kNumber && value == std::floor(value);
  if (!whole || value < static_cast<double>(range.min) || value > static_cast<double>(range.max)) {
    const std::string shown = member->kind == Kind::kString ? json_quote(member->value) : member->value;
    invalid_parameter(name, shown, "it must be a whole number, " + range_text(range));
  }
  return static_cast<std::int64_t>(value);
}

std::int64_t Parameters::multiple_of(std::int64_t step, std::string_view name, std::int64_t fallback, Range range) {
  const std::int64_t value = integer(name, fallback, range);
  if (value % step != 0) {
    invalid_parameter(name, std::to_string(value),
                      "it must be a multiple of " + std::to_string(step) + ", " + range_text(range));
  }
  return value;
}

std::int64_t Parameters::power_of_two(std::string_view name, std::int64_t fallback, Range range) {
  const std::int64_t value = integer(name, fallback, range);
  if ((value & (value - 1)) != 0) {
    invalid_parameter(name, std::to_string(value), "it must be a power of two, " + range_text(range));
  }
  return value;
}

std::string Parameters::text(std::string_view name, std::string_view fallback, std::size_t max_length) {
  const Member* member = use(name);
  if (member == nullptr) return std::string(fallback);
  if (member->kind != Kind::kString) invalid_parameter(name, member->value, "it must be a string");
  if (member->value.size() > max_length) {
    invalid_parameter(name, std::to_string(member->value.size()) + " bytes long",
                      "it must be at most " + std::to_string(max_length) + " bytes");
  }
  return member->value;
}

void Parameters::check_all_used() const {
  for (const Member& member : members_) {
    if (!member.used) invalid_parameter(member.name, "unknown", "see the function's own list of parameters");
  }
}

void JsonObject::begin(std::string_view name) {
  if (text_.size() > 1) text_ += ',';
  text_ += json_quote(name);
  text_ += ':';
}

JsonObject& JsonObject::add(std::string_view name, std::int64_t value) {
  begin(name);
  text_ += std::to_string(value);
  return *this;
}

JsonObject& JsonObject::add(std::string_view name, double value) {
  begin(name);
  char digits[32];
  const int length = std::snprintf(digits, sizeof digits, "%.9g", value);
  text_ += std::isfinite(value) ? std::string_view(digits, static_cast<std::size_t>(length)) : "null";
  return *this;
}

JsonObject& JsonObject::add(std::string_view name, std::string_view value) {
  begin(name);
  text_ += json_quote(value);
  return *this;
}

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace fairlead
