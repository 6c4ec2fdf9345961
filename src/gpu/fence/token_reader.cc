// What is asked of a token where the text must have it. Every name of a tenant comes through expect_name(), also as a label, a
// register or a target: so that none can be one of the fence.
#include "gpu/fence/token_reader.h"

#include "gpu/fence/parser.h"

namespace fairlead::fence {

bool TokenReader::fail(const std::string& reason) {
  if (!error_) error_ = Error{Errc::kInvalidArgument, at_line(function_, token_.line) + reason};
  return false;
}

bool TokenReader::expect(char punctuation) {
  return accept(punctuation) || fail(fmt::format("expected '{}' before '{}'", punctuation, token_.text));
}

bool TokenReader::expect_name(std::string_view& name, const char* what) {
  if (token_.kind != Token::Kind::kName) return fail(fmt::format("expected {} before '{}'", what, token_.text));
  if (names_ == Names::kOfSource && token_.text.find("__fence") != std::string_view::npos) {
    return fail(fmt::format("'{}' is a name the fence keeps for itself; give the source, not what was fenced already",
                            token_.text));
  }
  name = token_.text;
  advance();
  return true;
}

bool TokenReader::expect_integer(std::uint64_t& value, const char* what) {
  if (token_.kind != Token::Kind::kInteger || token_.bits > kLargestCount) {
    return fail(fmt::format("expected {}, at most 2^32, before '{}'", what, token_.text));
  }
  value = token_.bits;
  advance();
  return true;
}

bool TokenReader::skip_line() {
  const int line = token_.line;
  while (!is_end() && token_.line == line) advance();
  return true;
}

bool TokenReader::skip_section() {
  while (!is_end() && !is('{')) advance();
  while (!is_end() && !is('}')) advance();
  return expect('}');
}

}  // namespace fairlead::fence
