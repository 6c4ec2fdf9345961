// PTX text cut into tokens, one at a time and each by one look at the text, so that it is linear and keeps nothing:
//
//   @%p ld.global.v2.u32 {%r1, %r2}, [%rd1+-8];   @ %p ld .global .v2 .u32 { %r1 , %r2 } , [ %rd1 + - 8 ] ;
//
// A sign is a token of its own, and so is a word with its dot. What is fenced is written anew from these tokens, so a comment, a string or a blank that two
// compilers could read differently never reaches the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fairlead::fence {

struct Token {
  enum class Kind : std::uint8_t { kEnd, kName, kDotted, kInteger, kFloat, kString, kPunctuation, kInvalid };
  Kind kind = Kind::kEnd;
  int line = 1;
  std::string_view text;   // of a kDotted with its dot; of a kString with its quotes
  std::uint64_t bits = 0;  // of a kInteger, and of a kFloat as float (0f...) or double
  bool is_single = false;  // a kFloat of 32 bits
};

class Lexer {
 public:
  // The text must outlive the lexer and its tokens. A NUL ends it, as in the driver.
  explicit Lexer(std::string_view text) : text_(text.substr(0, text.find('\0'))) {}
  Token next();

 private:
  bool skip_blank();  // false: a comment does not end
  Token token(Token::Kind kind, std::size_t begin, std::size_t end) const;
  Token number();
  Token string();

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace fairlead::fence
