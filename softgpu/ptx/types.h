// The PTX scalar types and state spaces, and the C++ types that stand for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace softgpu::ptx {

enum class Type : std::uint8_t {
  kNone,
  kPred,
  kB8,
  kU8,
  kS8,
  kB16,
  kU16,
  kS16,
  kF16,
  kBf16,
  kB32,
  kU32,
  kS32,
  kF32,
  kF16x2,
  kBf16x2,
  kB64,
  kU64,
  kS64,
  kF64,
  kB128,
};

enum class Space : std::uint8_t { kGeneric, kGlobal, kConst, kShared, kLocal, kParam };

// The type a modifier such as "u32" names.
std::optional<Type> type_from_name(std::string_view name);
std::optional<Space> space_from_name(std::string_view name);
std::string_view type_name(Type type);

// Bytes of one value; 0 for kNone and kPred, which have no memory form.
constexpr std::size_t size_of(Type type) {
  switch (type) {
    case Type::kNone:
    case Type::kPred: return 0;
    case Type::kB8:
    case Type::kU8:
    case Type::kS8: return 1;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBf16: return 2;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64: return 8;
    case Type::kB128: return 16;
    default: return 4;
  }
}

constexpr bool is_signed(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}
constexpr bool is_float(Type type) {
  return type == Type::kF16 || type == Type::kBf16 || type == Type::kF32 || type == Type::kF64;
}
constexpr bool is_packed_half(Type type) {
  return type == Type::kF16x2 || type == Type::kBf16x2;
}

// The untyped or unsigned integer of the same width.
constexpr Type bits_of(Type type) {
  switch (size_of(type)) {
    case 1: return Type::kU8;
    case 2: return Type::kU16;
    case 4: return Type::kU32;
    case 8: return Type::kU64;
    default: return type;
  }
}

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Generic addresses of spaces that are not device memory. None is a canonical host address, so a device address never
// falls into them.
constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 32;
constexpr std::uint64_t kSharedWindow = std::uint64_t{0x40} << 56;
constexpr std::uint64_t kLocalWindow = std::uint64_t{0x41} << 56;
constexpr std::uint64_t kParamWindow = std::uint64_t{0x42} << 56;
constexpr std::uint64_t kCodeWindow = std::uint64_t{0x43} << 56;  // function addresses: window + 16 * function index

}  // namespace softgpu::ptx
