#include "cli/display_width.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

namespace fairlead::cli {
namespace {

struct Character {
  char32_t code = U'?';
  std::size_t bytes = 1;
  bool is_valid = false;
};

// REQUIRES: not empty. Overlong forms, surrogates and what lies beyond Unicode are no characters.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, lead >= 0x20 && lead != 0x7f};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  char32_t code = lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, length, code >= 0xa0};  // 0x80 to 0x9f: control characters
}

struct Range {
  char32_t first, last;
};

// Combining marks, joiners and marks of direction (Unicode's Mn, Me and Cf, the blocks that names are written with).
constexpr Range kNoColumns[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},  {0x064b, 0x065f}, {0x06d6, 0x06dc},
    {0x0900, 0x0902}, {0x093c, 0x093c}, {0x0941, 0x0948}, {0x0e31, 0x0e31},  {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x202a, 0x202e},  {0x2060, 0x2064}, {0x20d0, 0x20ff},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0100, 0xe01ef}};
// East Asian wide and full-width (UAX 11), and emoji that terminals show so.
constexpr Range kTwoColumns[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x2614, 0x2615},  {0x26a1, 0x26a1}, {0x2705, 0x2705},
    {0x274c, 0x274c},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},  {0x4e00, 0x9fff}, {0xa000, 0xa4cf},
    {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},  {0xff00, 0xff60}, {0xffe0, 0xffe6},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd}};

template <std::size_t N>
bool lies_in(const Range (&ranges)[N], char32_t code) {
  const auto behind = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                       [](char32_t value, const Range& range) { return value < range.first; });
  return behind != std::begin(ranges) && code <= std::prev(behind)->last;
}

std::size_t columns_of(const Character& character) {
  if (!character.is_valid) return 1;
  return lies_in(kNoColumns, character.code) ? 0 : lies_in(kTwoColumns, character.code) ? 2 : 1;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t sum = 0;
  while (!text.empty()) {
    const Character next = first_of(text);
    sum += columns_of(next);
    text.remove_prefix(next.bytes);
  }
  return sum;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  const bool is_cut = display_width(text) > columns;
  const std::size_t room = is_cut && columns > 0 ? columns - 1 : columns;
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    const Character next = first_of(text);
    if (used + columns_of(next) > room) break;
    used += columns_of(next);
    out += next.is_valid ? std::string(text.substr(0, next.bytes)) : "?";
    text.remove_prefix(next.bytes);
  }
  return is_cut && columns > 0 ? out + "…" : out;
}

std::string fit_to(std::string_view text, std::size_t columns, bool right) {
  const std::string cut = cut_to(text, columns);
  const std::string blanks(columns - std::min(columns, display_width(cut)), ' ');
  return right ? blanks + cut : cut + blanks;
}

}  // namespace fairlead::cli
