// Words of PTX text, no more of the language than it takes to find declarations: ".param" is a word, "ld.param.u64" one,
// "%r1", "0x10" and "\"text\"" too; every other sign stands alone. Comments are blank.
//
// Speed decides the shape: a module of 1 MB has 300,000 words, which a node reads when somebody deploys it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace fairlead {

class PtxScanner {
 public:
  explicit PtxScanner(std::string_view text) : text_(text) {}

  // Empty at the end, which an open comment or string is as well.
  std::string_view next() {
    skip_blank();
    begin_ = at_;
    if (at_ == text_.size()) return {};
    const char first = text_[at_++];
    if (first == '"') {
      skip_string();
    } else if (kKinds[static_cast<unsigned char>(first)] == kDot) {
      skip(kWord);
    } else if (kKinds[static_cast<unsigned char>(first)] == kWord) {
      skip(kWord | kDot);
    }
    return text_.substr(begin_, at_ - begin_);
  }
  std::string_view peek() {
    const std::size_t at = at_;
    const std::string_view word = next();
    at_ = at;
    return word;
  }
  // Takes the next word if it is this one.
  bool take(std::string_view word) {
    if (peek() != word) return false;
    next();
    return true;
  }

  // Of the word read last, from 1 on.
  std::size_t line() const;

 private:
  enum Kind : std::uint8_t { kSign = 0, kWord = 1, kDot = 2, kBlank = 4, kSlash = 8 };

  static constexpr std::array<std::uint8_t, 256> kinds() {
    std::array<std::uint8_t, 256> kinds{};
    for (unsigned c = 0; c < 256; ++c) {
      const bool is_letter = (c | 0x20U) >= 'a' && (c | 0x20U) <= 'z';
      const bool is_digit = c >= '0' && c <= '9';
      if (is_letter || is_digit || c == '_' || c == '$' || c == '%') kinds[c] = kWord;
      if (c == ' ' || (c >= '\t' && c <= '\r')) kinds[c] = kBlank;
    }
    kinds['.'] = kDot;
    kinds['/'] = kSlash;
    return kinds;
  }
  static const std::array<std::uint8_t, 256> kKinds;

  void skip(unsigned kinds) {
    while (at_ < text_.size() && (kKinds[static_cast<unsigned char>(text_[at_])] & kinds) != 0) ++at_;
  }
  void skip_blank() {
    while (at_ < text_.size()) {
      skip(kBlank);
      if (at_ == text_.size() || text_[at_] != '/' || !skip_comment()) return;
    }
  }
  bool skip_comment();
  void skip_string();

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;
};

inline constexpr std::array<std::uint8_t, 256> PtxScanner::kKinds = PtxScanner::kinds();

}  // namespace fairlead
