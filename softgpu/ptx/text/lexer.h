// Splits PTX text into tokens, one at a time, without copying.
#pragma once

#include <cstdint>
#include <string_view>

namespace softgpu::ptx {

struct Token {
  enum class Kind : std::uint8_t {
    kEnd,
    kIdentifier,   // a name, %register or $label
    kDotted,       // .word or .word::word, text without the leading dot
    kInteger,      // bits
    kFloat32,      // 0f..., bits
    kFloat64,      // 0d... or decimal, bits
    kString,       // text without the quotes
    kPunctuation,  // text is one character
    kInvalid,      // a character or number PTX does not have
  };
  Kind kind = Kind::kEnd;
  int line = 1;
  std::string_view text;
  std::uint64_t bits = 0;
  bool is_unsigned = false;  // an integer with a U
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();

 private:
  void skip_blank();
  Token number();
  Token token(Token::Kind kind, std::size_t begin, std::size_t end) const;

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace softgpu::ptx
