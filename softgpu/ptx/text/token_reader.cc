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

bool TokenReader::is_passing_directive() const {
  return is_dotted("loc") || is_dotted("pragma") || is_dotted("file") || is_dotted("version") || is_dotted("target") ||
         is_dotted("address_size");
}

bool TokenReader::skip_directive() {
  if (is_dotted("loc")) return skip_location();
  if (is_dotted("pragma")) return skip_pragma();
  if (is_dotted("file")) return skip_file();
  if (is_dotted("target")) return skip_target();
  advance();  // .version or .address_size
  return skip_numbers();
}

bool TokenReader::skip_numbers() {
  if (!is_number()) return fail_expected("a number");
  while (is_number()) advance();
  return true;
}

// .target sm_90a, debug
bool TokenReader::skip_target() {
  std::string_view name;
  do {
    advance();
    if (!expect_name(name, "a target")) return false;
  } while (is(','));
  return true;
}

// .file 1 "a.cu", 1700000000, 512
bool TokenReader::skip_file() {
  advance();
  if (!skip_numbers()) return false;
  if (!is_string()) return fail_expected("the name of a file");
  while (is_string() || is_number()) advance();
  while (accept(',')) {
    if (!skip_numbers()) return false;
  }
  return true;
}

// .loc 1 7 3, function_name $L__info_string0 + 16, inlined_at 1 20 5
bool TokenReader::skip_location() {
  advance();
  if (!skip_numbers()) return false;
  while (accept(',')) {
    std::string_view word, label;
    if (!expect_name(word, "function_name or inlined_at")) return false;
    if (word == "inlined_at") {
      if (!skip_numbers()) return false;
    } else if (word != "function_name" || !expect_name(label, "a label") || (accept('+') && !skip_numbers())) {
      return fail_expected("the name of a function in .loc");
    }
  }
  return true;
}

// .pragma "nounroll", "used_bytes_mask 0xff";
bool TokenReader::skip_pragma() {
  do {
    advance();
    if (!is_string()) return fail_expected("a string");
    advance();
  } while (is(','));
  return expect(';');
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
