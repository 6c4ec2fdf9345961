// Half-precision values as the handlers see them. f16 is the compiler's _Float16; bf16 is done in integers.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {

struct BFloat16 {
  std::uint16_t bits;
};

inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// Round to nearest even; every NaN becomes the canonical one.
inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return {0x7fff};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// Rounds a wider value once: to odd in float first, so that the second rounding cannot err.
template <class Wide>
inline float round_to_odd(Wide value) {
  float nearest = static_cast<float>(value);
  if (static_cast<Wide>(nearest) == value || nearest != nearest) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if ((bits & 0x7fffffff) == 0x7f800000) return nearest;
  if ((bits & 1) != 0) return nearest;
  const bool towards_zero = std::fabs(static_cast<Wide>(nearest)) > std::fabs(value);
  return std::bit_cast<float>(towards_zero ? bits - 1 : bits + 1);
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
