#include "softgpu/ptx/text/token_reader.h"

#include <utility>

namespace softgpu::ptx {

bool TokenReader::fail(std::string message, LoadError::Kind kind) {
  return fail_at(token_.line, std::move(message), kind);
}

bool TokenReader::fail_at(int line, std::string message, LoadError::Kind kind) {
  if (!error_) error_ = LoadError{kind, line, std::move(message)};
  return false;
}

bool TokenReader::fail_expected(const std::string& what) {
  return fail("expected " + what + " before '" + std::string(token_.text) + "'");
}

bool TokenReader::expect(char punctuation) {
  if (accept(punctuation)) return true;
  return fail_expected(std::string("'") + punctuation + "'");
}

bool TokenReader::expect_name(std::string_view& name, const char* what) {
  if (!is_name()) return fail_expected(what);
  name = token_.text;
  advance();
  return true;
}

bool TokenReader::expect_count(std::size_t& value, const char* what) {
  constexpr std::uint64_t kLargestCount = std::uint64_t{1} << 40;
  if (token_.kind != Token::Kind::kInteger || token_.bits > kLargestCount) {
    return fail_expected(std::string(what) + ", at most 2^40,");
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

}  // namespace softgpu::ptx
