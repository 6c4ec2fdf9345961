#include "softgpu/device/uuid.h"

#include <cctype>
#include <cstring>

#include "softgpu/device/files.h"

namespace softgpu {
namespace {

bool dash_before(std::size_t byte) {
  return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

int digit_of(char letter) {
  const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (lower >= '0' && lower <= '9') return lower - '0';
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

Uuid random_uuid() {
  Uuid uuid;
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint64_t number = random_number();
    std::memcpy(uuid.data() + half * sizeof number, &number, sizeof number);
  }
  uuid[6] = static_cast<unsigned char>((uuid[6] & 0x0F) | 0x40);
  uuid[8] = static_cast<unsigned char>((uuid[8] & 0x3F) | 0x80);
  return uuid;
}

std::string uuid_string(const Uuid& uuid) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (dash_before(i)) text += '-';
    text += kHex[uuid[i] / 16];
    text += kHex[uuid[i] % 16];
  }
  return text;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
  Uuid uuid;
  std::size_t at = 0;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (dash_before(i) && (at >= text.size() || text[at++] != '-')) return std::nullopt;
    if (at + 2 > text.size()) return std::nullopt;
    const int high = digit_of(text[at++]);
    const int low = digit_of(text[at++]);
    if (high < 0 || low < 0) return std::nullopt;
    uuid[i] = static_cast<unsigned char>(high * 16 + low);
  }
  if (at != text.size()) return std::nullopt;
  return uuid;
}

}  // namespace softgpu
