// Tokens one at a time, with the first error that was met. Functions return false when they, or one before them, failed, and
// error() says why. So a parser is a chain of `&&` and ends by itself:
//
//   reader.expect_name(name, "the name of an alias") && reader.expect(',')     false: "expected ',' before ';'", line 7
//
// Linear: following() alone looks ahead, by one token. Threads: none of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/text/lexer.h"

namespace softgpu::ptx {

class TokenReader {
 public:
  // The text must outlive the reader and its tokens.
  explicit TokenReader(std::string_view text) : lexer_(text), token_(lexer_.next()) {}

  const Token& token() const { return token_; }
  // The one behind it, which is not taken.
  Token following() const {
    Lexer ahead = lexer_;
    return ahead.next();
  }
  void advance() { token_ = lexer_.next(); }
  bool is_end() const { return token_.kind == Token::Kind::kEnd; }
  bool is_number() const { return token_.kind == Token::Kind::kInteger || token_.kind == Token::Kind::kFloat64; }
  bool is_string() const { return token_.kind == Token::Kind::kString; }
  bool is_name() const { return token_.kind == Token::Kind::kIdentifier; }
  bool is_dotted() const { return token_.kind == Token::Kind::kDotted; }
  bool is_dotted(std::string_view word) const { return is_dotted() && token_.text == word; }
  bool is(char punctuation) const { return token_.kind == Token::Kind::kPunctuation && token_.text[0] == punctuation; }

  // Takes the token if it is this one.
  bool accept(char punctuation) {
    if (!is(punctuation)) return false;
    advance();
    return true;
  }

  // Take a token of a kind, or fail. `what` stands behind "expected".
  bool expect(char punctuation);
  bool expect_name(std::string_view& name, const char* what);
  bool expect_count(std::size_t& value, const char* what);  // up to 2^40

  // What is not kept: .version, .target, .address_size, .file, .loc and .pragma with their operands, wherever lines end;
  // a statement whose end is that of its line; and a section in braces.
  bool is_passing_directive() const;
  bool skip_directive();
  bool skip_line();
  bool skip_section();

  // Records the error, unless there is one. Always false. Without a line it is the token's.
  bool fail(std::string message, LoadError::Kind kind = LoadError::Kind::kSyntax);
  bool fail_at(int line, std::string message, LoadError::Kind kind = LoadError::Kind::kSyntax);
  // fail() with "expected `what` before", and the token.
  bool fail_expected(const std::string& what);
  const std::optional<LoadError>& error() const { return error_; }

 private:
  bool skip_target();
  bool skip_file();
  bool skip_location();
  bool skip_pragma();
  bool skip_numbers();  // one at least

  Lexer lexer_;
  Token token_;
  std::optional<LoadError> error_;
};

}  // namespace softgpu::ptx
