#include "model/kernel_task.h"

#include <algorithm>

namespace fairlead {
namespace {

struct ElementTypeRow {
  std::string_view name;
  std::size_t bytes;
};
// In the order of ElementType.
constexpr std::array<ElementTypeRow, 15> kElementTypes{{{"bytes", 1},
                                                        {"s8", 1},
                                                        {"u8", 1},
                                                        {"s16", 2},
                                                        {"u16", 2},
                                                        {"s32", 4},
                                                        {"u32", 4},
                                                        {"s64", 8},
                                                        {"u64", 8},
                                                        {"f16", 2},
                                                        {"bf16", 2},
                                                        {"f32", 4},
                                                        {"f64", 8},
                                                        {"c64", 8},
                                                        {"c128", 16}}};
static_assert(kElementTypes.size() == static_cast<std::size_t>(ElementType::kC128) + 1);

// In the order of BufferRole.
constexpr std::array<std::string_view, 5> kRoles{"input", "constant", "output", "inout", "temporary"};
static_assert(kRoles.size() == static_cast<std::size_t>(BufferRole::kTemporary) + 1);

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:@").find(c) != std::string_view::npos;
}

Status validate_segments(std::string_view key) {
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view segment = key.substr(begin, end - begin);
    if (segment.empty()) {
      return fail(Errc::kInvalidArgument, "object key '{}' begins or ends with '/' or has '//' in it", key);
    }
    if (segment == "." || segment == "..") {
      return fail(Errc::kInvalidArgument, "object key '{}' has the segment '{}'; a key is no path, name it in full",
                  key, segment);
    }
    begin = end + 1;
  }
  return {};
}

}  // namespace

std::string_view element_type_name(ElementType type) {
  return kElementTypes.at(static_cast<std::size_t>(type)).name;
}

std::optional<ElementType> element_type_named(std::string_view name) {
  const auto row = std::find_if(kElementTypes.begin(), kElementTypes.end(),
                                [name](const ElementTypeRow& candidate) { return candidate.name == name; });
  if (row == kElementTypes.end()) return std::nullopt;
  return static_cast<ElementType>(row - kElementTypes.begin());
}

std::size_t element_bytes(ElementType type) {
  return kElementTypes.at(static_cast<std::size_t>(type)).bytes;
}

std::optional<Bytes> shape_bytes(ElementType type, const std::vector<std::uint64_t>& shape) {
  const auto most = static_cast<std::uint64_t>(kMaxObjectBytes.count());
  std::uint64_t bytes = element_bytes(type);
  for (const std::uint64_t dimension : shape) {
    if (dimension != 0 && bytes > most / dimension) return std::nullopt;
    bytes *= dimension;
  }
  return Bytes(static_cast<std::int64_t>(bytes));
}

std::string_view buffer_role_name(BufferRole role) {
  return kRoles.at(static_cast<std::size_t>(role));
}

std::optional<BufferRole> buffer_role_named(std::string_view name) {
  const auto role = std::find(kRoles.begin(), kRoles.end(), name);
  if (role == kRoles.end()) return std::nullopt;
  return static_cast<BufferRole>(role - kRoles.begin());
}

Status validate_object_key(std::string_view key) {
  if (key.empty() || key.size() > kMaxObjectKeyLength) {
    return fail(Errc::kInvalidArgument, "object key '{}' has {} bytes; it must have 1 to {}",
                key.substr(0, std::min<std::size_t>(key.size(), 32)), key.size(), kMaxObjectKeyLength);
  }
  const auto wrong = std::find_if_not(key.begin(), key.end(), is_key_character);
  if (wrong != key.end()) {
    return fail(Errc::kInvalidArgument,
                "object key: byte {} is 0x{:02x}; a key has letters, digits and '-', '_', '.', '/', ':', '@' only",
                wrong - key.begin(), static_cast<unsigned char>(*wrong));
  }
  return validate_segments(key);
}

}  // namespace fairlead
