// Stricter than the driver's compiler: a word that is not understood whole is invalid and ends the parsing, where a compiler
// might take a part of it. In numbers that matters most, since a mask is one: 0x, 0b and 0 in front mean what they do in C, and
// 09 is no number rather than a decimal one.
#include "gpu/fence/lexer.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace fairlead::fence {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$';
}
// Of characters outside of ASCII none is a word or a blank, so that none gets past the lexer.
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

bool parse_whole(std::string_view digits, std::uint64_t& value, int base) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  return error == std::errc{} && end == digits.data() + digits.size();
}

bool starts_with_letter(std::string_view word, char letter) {
  return word.size() > 2 && word[0] == '0' && (word[1] | 0x20) == letter;
}

// "0f3F800000" and "0d..." spell out the bits of a float.
bool parse_float(std::string_view word, Token& token) {
  token.kind = Token::Kind::kFloat;
  token.is_single = starts_with_letter(word, 'f');
  if (token.is_single || starts_with_letter(word, 'd')) {
    return word.size() == (token.is_single ? 10u : 18u) && parse_whole(word.substr(2), token.bits, 16);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  token.bits = std::bit_cast<std::uint64_t>(value);
  return error == std::errc{} && end == word.data() + word.size();
}

bool parse_integer(std::string_view word, Token& token) {
  token.kind = Token::Kind::kInteger;
  if (word.size() > 1 && (word.back() == 'U' || word.back() == 'u')) word.remove_suffix(1);
  if (starts_with_letter(word, 'x')) return parse_whole(word.substr(2), token.bits, 16);
  if (starts_with_letter(word, 'b')) return parse_whole(word.substr(2), token.bits, 2);
  if (word.size() > 1 && word[0] == '0') return parse_whole(word.substr(1), token.bits, 8);
  return parse_whole(word, token.bits, 10);
}

}  // namespace

Token Lexer::token(Token::Kind kind, std::size_t begin, std::size_t end) const {
  return {.kind = kind, .line = line_, .text = text_.substr(begin, end - begin)};
}

// Comments do not nest, as in C. One that does not end is an error, not a blank: what follows would be text to one reader and
// none to another.
bool Lexer::skip_blank() {
  while (at_ < text_.size()) {
    if (is_blank(text_[at_])) {
      line_ += text_[at_++] == '\n';
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_, 2) == "/*") {
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) return false;
      line_ += static_cast<int>(std::ranges::count(text_.substr(at_, end - at_), '\n'));
      at_ = end + 2;
    } else {
      break;
    }
  }
  return true;
}

Token Lexer::number() {
  std::size_t end = at_;
  bool is_decimal = false;
  while (end < text_.size() && (is_word(text_[end]) || text_[end] == '.')) is_decimal |= text_[end++] == '.';
  const bool has_exponent = is_decimal && (text_[end - 1] | 0x20) == 'e';
  if (has_exponent && end < text_.size() && (text_[end] == '+' || text_[end] == '-')) {
    ++end;
    while (end < text_.size() && is_digit(text_[end])) ++end;
  }
  Token result = token(Token::Kind::kInteger, at_, end);
  at_ = end;
  const bool is_float = is_decimal || starts_with_letter(result.text, 'f') || starts_with_letter(result.text, 'd');
  const bool ok = is_float ? parse_float(result.text, result) : parse_integer(result.text, result);
  if (!ok) result.kind = Token::Kind::kInvalid;
  return result;
}

// A string ends on its line, and has no escapes: a quote that is escaped to one reader ends the string of another.
Token Lexer::string() {
  const std::size_t begin = at_;
  const std::size_t end = text_.find_first_of("\"\n", begin + 1);
  const bool ends = end != std::string_view::npos && text_[end] == '"';
  at_ = ends ? end + 1 : text_.size();
  return token(ends ? Token::Kind::kString : Token::Kind::kInvalid, begin, at_);
}

Token Lexer::next() {
  if (!skip_blank()) {
    const Token open = token(Token::Kind::kInvalid, at_, std::min(at_ + 2, text_.size()));
    at_ = text_.size();
    return open;
  }
  if (at_ >= text_.size()) return token(Token::Kind::kEnd, text_.size(), text_.size());
  const std::size_t begin = at_;
  const char c = text_[at_];
  if (is_digit(c)) return number();
  if (c == '"') return string();
  ++at_;
  if (is_word(c) || c == '%') {
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return token(Token::Kind::kName, begin, at_);
  }
  if (c == '.' && at_ < text_.size() && is_word(text_[at_])) {
    while (at_ < text_.size() && (is_word(text_[at_]) || text_.substr(at_, 2) == "::")) {
      at_ += text_[at_] == ':' ? 2 : 1;
    }
    return token(Token::Kind::kDotted, begin, at_);
  }
  const bool is_known = std::string_view(",;:[]{}()<>@!|+-=").find(c) != std::string_view::npos;
  return token(is_known ? Token::Kind::kPunctuation : Token::Kind::kInvalid, begin, at_);
}

}  // namespace fairlead::fence
