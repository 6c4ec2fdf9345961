#include "softgpu/ptx/text/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

namespace softgpu::ptx {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$';
}
bool is_word_start(char c) {
  return (is_word(c) && !is_digit(c)) || c == '%';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

template <class Integer>
bool parse_whole(std::string_view digits, Integer& value, int base) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  return error == std::errc{} && end == digits.data() + digits.size();
}

// "0f3F800000" and "0d..." spell out the bits of a float.
bool parse_float_bits(std::string_view word, Token& token) {
  const bool is_single = word[1] == 'f' || word[1] == 'F';
  token.kind = is_single ? Token::Kind::kFloat32 : Token::Kind::kFloat64;
  return word.size() == (is_single ? 10u : 18u) && parse_whole(word.substr(2), token.bits, 16);
}

bool parse_integer(std::string_view word, Token& token) {
  token.kind = Token::Kind::kInteger;
  token.is_unsigned = word.size() > 1 && (word.back() == 'U' || word.back() == 'u');
  if (token.is_unsigned) word.remove_suffix(1);
  if (word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X')) {
    return parse_whole(word.substr(2), token.bits, 16);
  }
  if (word.size() > 2 && word[0] == '0' && (word[1] == 'b' || word[1] == 'B')) {
    return parse_whole(word.substr(2), token.bits, 2);
  }
  if (word.size() > 1 && word[0] == '0') return parse_whole(word.substr(1), token.bits, 8);
  return parse_whole(word, token.bits, 10);
}

bool parse_decimal_float(std::string_view word, Token& token) {
  token.kind = Token::Kind::kFloat64;
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return false;
  std::memcpy(&token.bits, &value, sizeof value);
  return true;
}

}  // namespace

Token Lexer::token(Token::Kind kind, std::size_t begin, std::size_t end) const {
  return {.kind = kind, .line = line_, .text = text_.substr(begin, end - begin)};
}

void Lexer::skip_blank() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (is_blank(c)) {
      line_ += c == '\n';
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_, 2) == "/*") {
      const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size() - 2);
      line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                           text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      at_ = end + 2;
    } else {
      return;
    }
  }
}

Token Lexer::number() {
  std::size_t end = at_;
  bool is_decimal = false, is_plain = true;  // plain: decimal digits so far
  while (end < text_.size() && (is_word(text_[end]) || text_[end] == '.')) {
    const char c = text_[end++];
    is_decimal |= c == '.' || (is_plain && (c == 'e' || c == 'E'));  // 1e3 is one without a point
    is_plain = is_plain && is_digit(c);
  }
  const auto exponent_sign = [&] {
    return end < text_.size() && (text_[end] == '+' || text_[end] == '-') && is_decimal &&
           (text_[end - 1] == 'e' || text_[end - 1] == 'E');
  };
  if (exponent_sign()) {
    ++end;
    while (end < text_.size() && is_digit(text_[end])) ++end;
  }
  Token result = token(Token::Kind::kInteger, at_, end);
  const std::string_view word = result.text;
  at_ = end;
  const bool spells_bits = word.size() > 2 && word[0] == '0' && std::strchr("fFdD", word[1]) != nullptr;
  const bool ok = spells_bits  ? parse_float_bits(word, result)
                  : is_decimal ? parse_decimal_float(word, result)
                               : parse_integer(word, result);
  if (!ok) result.kind = Token::Kind::kInvalid;
  return result;
}

Token Lexer::next() {
  skip_blank();
  // A NUL ends the text: drivers pass C strings with a length that includes the terminator.
  if (at_ >= text_.size() || text_[at_] == '\0') return token(Token::Kind::kEnd, text_.size(), text_.size());
  const std::size_t begin = at_;
  const char c = text_[at_];
  if (is_digit(c)) return number();
  if (is_word_start(c)) {
    ++at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return token(Token::Kind::kIdentifier, begin, at_);
  }
  if (c == '.' && begin + 1 < text_.size() && is_word(text_[begin + 1])) {
    ++at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || text_.substr(at_, 2) == "::"))
      at_ += text_[at_] == ':' ? 2 : 1;
    return token(Token::Kind::kDotted, begin + 1, at_);
  }
  if (c == '"') {
    const std::size_t end = std::min(text_.find('"', begin + 1), text_.size());
    at_ = std::min(end + 1, text_.size());
    return token(Token::Kind::kString, begin + 1, end);
  }
  ++at_;
  const bool known = std::strchr(",;:[]{}()<>@!|+-=&*/~?^", c) != nullptr;
  return token(known ? Token::Kind::kPunctuation : Token::Kind::kInvalid, begin, at_);
}

}  // namespace softgpu::ptx
