// Tokens one at a time and one ahead, with the first error that was met. Functions return false when they, or one before them,
// failed; error() says why, with function and line. So a parser is a chain of `&&`, and ends by itself.
//
//   reader.expect_name(name, "the name of an alias") && reader.expect(',')      false: "line 7: expected ',' before ';'"
//
// Linear: no token is read twice. Threads: none of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu/fence/lexer.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

class TokenReader {
 public:
  // The text must outlive the reader and its names.
  TokenReader(std::string_view text, Names names) : names_(names), lexer_(text), token_(lexer_.next()) {}

  const Token& token() const { return token_; }
  void advance() { token_ = lexer_.next(); }
  bool is_end() const { return token_.kind == Token::Kind::kEnd; }
  bool is_dotted() const { return token_.kind == Token::Kind::kDotted; }
  bool is_dotted(std::string_view word) const { return is_dotted() && token_.text == word; }
  bool is(char punctuation) const { return token_.kind == Token::Kind::kPunctuation && token_.text[0] == punctuation; }

  // Takes the token if it is this one.
  bool accept(char punctuation) {
    if (!is(punctuation)) return false;
    advance();
    return true;
  }
  bool accept_dotted(std::string_view word) {
    if (!is_dotted(word)) return false;
    advance();
    return true;
  }

  // Take a token of a kind, or fail. `what` stands behind "expected".
  bool expect(char punctuation);
  bool expect_name(std::string_view& name, const char* what);
  // Up to kLargestCount.
  bool expect_integer(std::uint64_t& value, const char* what);

  // Debug information has no terminator but the end of its line, or the '}' of its section; none of it is kept.
  bool skip_line();
  bool skip_section();

  // The function that errors from now on are in; empty: none.
  void enter(std::string_view function) { function_ = function; }
  bool fail(const std::string& reason);
  const std::optional<Error>& error() const { return error_; }

  // More than any device has for one variable, and small enough that sizes of several do not wrap around.
  static constexpr std::uint64_t kLargestCount = std::uint64_t{1} << 32;

 private:
  const Names names_;
  Lexer lexer_;
  Token token_;
  std::string_view function_;
  std::optional<Error> error_;
};

}  // namespace fairlead::fence
