// From a PTX type to the C++ type a handler template is instantiated with.
#pragma once

#include <cstdint>

#include "softgpu/ptx/program.h"
#include "softgpu/ptx/types.h"

namespace softgpu::ptx {

template <class T>
struct Tag {
  using type = T;
};

// `pick` maps a Tag to a Handler. Null for types that are not in the class.
template <class Pick>
Handler with_integer(Type type, const Pick& pick) {
  switch (type) {
    case Type::kB16:
    case Type::kU16: return pick(Tag<std::uint16_t>{});
    case Type::kS16: return pick(Tag<std::int16_t>{});
    case Type::kB32:
    case Type::kU32: return pick(Tag<std::uint32_t>{});
    case Type::kS32: return pick(Tag<std::int32_t>{});
    case Type::kB64:
    case Type::kU64: return pick(Tag<std::uint64_t>{});
    case Type::kS64: return pick(Tag<std::int64_t>{});
    default: return nullptr;
  }
}

template <class Pick>
Handler with_word(Type type, const Pick& pick) {
  return size_of(type) >= 4 ? with_integer(type, pick) : nullptr;
}

template <class Pick>
Handler with_float(Type type, const Pick& pick) {
  switch (type) {
    case Type::kF32: return pick(Tag<float>{});
    case Type::kF64: return pick(Tag<double>{});
    default: return nullptr;
  }
}

template <class Pick>
Handler with_bits(std::size_t bytes, const Pick& pick) {
  switch (bytes) {
    case 1: return pick(Tag<std::uint8_t>{});
    case 2: return pick(Tag<std::uint16_t>{});
    case 4: return pick(Tag<std::uint32_t>{});
    case 8: return pick(Tag<std::uint64_t>{});
    default: return nullptr;
  }
}

}  // namespace softgpu::ptx
