#include "base/base64.h"

#include <array>
#include <cstdint>

namespace fairlead {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 0xff;

constexpr std::array<std::uint8_t, 256> values_of_digits() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = values_of_digits();

std::uint32_t byte_at(std::string_view bytes, std::size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
}

// Appends the bytes of a group of four digits, of which the last 0 to 2 are padding. False: it is none, or bits that no
// byte holds are set.
bool append_group(std::string_view group, std::size_t padding, std::string& out) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint8_t value = i < 4 - padding ? kValues[static_cast<unsigned char>(group[i])] : 0;
    if (value == kNoDigit) return false;
    bits = bits << 6 | value;
  }
  if ((bits & ((1U << 8 * padding) - 1)) != 0) return false;
  for (std::size_t i = 0; i < 3 - padding; ++i) out.push_back(static_cast<char>(bits >> (16 - 8 * i)));
  return true;
}

std::size_t padding_of(std::string_view text) {
  if (!text.ends_with('=')) return 0;
  return text.ends_with("==") ? 2 : 1;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::uint32_t bits = byte_at(bytes, at) << 16 | byte_at(bytes, at + 1) << 8 | byte_at(bytes, at + 2);
    for (unsigned shift = 18, digit = 0; digit < 4; shift -= 6, ++digit) text.push_back(kDigits[bits >> shift & 63]);
  }
  for (std::size_t over = bytes.size() % 3, i = 0; over != 0 && i < 3 - over; ++i) text[text.size() - 1 - i] = '=';
  return text;
}

Result<std::string> base64_decode(std::string_view field, std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  bool is_base64 = text.size() % 4 == 0;
  for (std::size_t at = 0; is_base64 && at < text.size(); at += 4) {
    const std::string_view group = text.substr(at, 4);
    is_base64 = append_group(group, at + 4 == text.size() ? padding_of(group) : 0, bytes);
  }
  if (is_base64) return bytes;
  return fail(Errc::kInvalidArgument, "{}: its {} characters are not base64 with padding", field, text.size());
}

}  // namespace fairlead
