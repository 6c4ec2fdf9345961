#include "softgpu/ptx/text/header.h"

#include <charconv>

#include "softgpu/ptx/text/lexer.h"

namespace softgpu::ptx {
namespace {

// "7.5" -> 75.
bool read_version(std::string_view text, int& version) {
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, major);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '.') return false;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc{}) return false;
  if (major > 99 || minor > 9) return false;
  version = static_cast<int>(major * 10 + minor);
  return true;
}

// "sm_90a" -> 90, 'a'.
bool read_target(std::string_view text, Header& header) {
  if (!text.starts_with("sm_")) return false;
  const char* const end = text.data() + text.size();
  unsigned architecture = 0;
  const auto number = std::from_chars(text.data() + 3, end, architecture);
  if (number.ec != std::errc{} || architecture > 999) return false;
  header.architecture = static_cast<int>(architecture);
  if (number.ptr != end) header.variant = *number.ptr;
  return true;
}

}  // namespace

std::optional<Header> read_header(std::string_view text) {
  Lexer lexer(text);
  Header header;
  Token token = lexer.next();
  if (token.kind != Token::Kind::kDotted || token.text != "version") return std::nullopt;
  if (!read_version(lexer.next().text, header.version)) return std::nullopt;
  token = lexer.next();
  if (token.kind != Token::Kind::kDotted || token.text != "target") return std::nullopt;
  if (!read_target(lexer.next().text, header)) return std::nullopt;
  return header;
}

bool runs_on(const Header& header, int architecture) {
  if (header.variant == 'a') return header.architecture == architecture;
  if (header.variant == 'f' && header.architecture / 10 != architecture / 10) return false;
  return header.architecture <= architecture;
}

std::vector<std::string_view> managed_variables(std::string_view text) {
  std::vector<std::string_view> names;
  Lexer lexer(text);
  bool is_managed = false;
  for (Token token = lexer.next(); token.kind != Token::Kind::kEnd; token = lexer.next()) {
    if (token.kind == Token::Kind::kDotted && token.text == "managed") is_managed = true;
    if (!is_managed || token.kind != Token::Kind::kIdentifier) continue;
    names.push_back(token.text);  // the first name after the attribute; types and alignments are no identifiers
    is_managed = false;
  }
  return names;
}

}  // namespace softgpu::ptx
