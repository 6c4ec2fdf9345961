// Fragments of matrices: how the elements of a matrix lie in the registers of a warp's lanes.
//
// mma.sync fixes the places (PTX ISA, matrix fragments). With g = lane / 4, t = lane % 4 and p elements in a register,
// register i of the 16 x k matrix A holds, in part j, row g + 8 (i % 2), column p t + j + 4 p (i / 2); of the k x 8
// matrix B row p t + j + 4 p i, column g; element e of the accumulators row g + 8 (e / 2), column 2 t + e % 2. So lane
// 5 (g 1, t 1) of A in m16n8k16.f16 has in register 3 row 9, columns 10 and 11.
//
// wmma leaves the places open: here element number s of the warp's registers, lane after lane, is element s modulo the
// size of the matrix, row by row. Types that are given more registers than elements hold copies.
#pragma once

#include <bit>
#include <cstdint>

#include "softgpu/ptx/ops/half.h"
#include "softgpu/ptx/rows.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {

enum class Element : std::uint8_t { kF16, kBf16, kTf32, kF32, kF64, kS8, kU8, kS4, kU4, kB1, kS32, kE4m3, kE5m2 };
inline constexpr std::string_view kElementNames[] = {"f16", "bf16", "tf32", "f32", "f64",  "s8",  "u8",
                                                     "s4",  "u4",   "b1",   "s32", "e4m3", "e5m2"};

// Bits of one element. Single bits are handled in words of 32, which the products count at once.
constexpr unsigned element_bits(Element element) {
  switch (element) {
    case Element::kF64: return 64;
    case Element::kF16:
    case Element::kBf16: return 16;
    case Element::kS8:
    case Element::kU8:
    case Element::kE4m3:
    case Element::kE5m2: return 8;
    case Element::kS4:
    case Element::kU4: return 4;
    default: return 32;
  }
}
constexpr unsigned per_register(Element element) {
  return element == Element::kF64 ? 1 : 32 / element_bits(element);
}
constexpr bool is_integer_element(Element element) {
  return element == Element::kS8 || element == Element::kU8 || element == Element::kS4 || element == Element::kU4;
}

enum class Fragment : std::uint8_t { kA, kB, kAccumulator };

struct Place {
  unsigned row = 0, column = 0;
};

// Where in a rows x columns matrix the element lies that is number `e` of lane's registers, p of them in a register.
inline Place mma_place(Fragment fragment, unsigned rows, unsigned p, unsigned lane, unsigned e) {
  const unsigned g = lane / 4, t = lane % 4, i = e / p, j = e % p;
  switch (fragment) {
    case Fragment::kA:
      return rows == 8 ? Place{g, p * t + j + 4 * p * i} : Place{g + 8 * (i % 2), p * t + j + 4 * p * (i / 2)};
    case Fragment::kB: return {p * t + j + 4 * p * i, g};
    default: return {g + 8 * (e / 2), 2 * t + e % 2};
  }
}
inline Place wmma_place(unsigned rows, unsigned columns, unsigned per_lane, unsigned lane, unsigned e) {
  const unsigned index = (lane * per_lane + e) % (rows * columns);
  return {index / columns, index % columns};
}

// e4m3 has no infinities and one NaN; e5m2 is the upper half of an f16.
inline double from_e4m3(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  if ((bits & 0x7f) == 0x7f) return __builtin_nan("");
  const double magnitude = exponent == 0 ? fraction * 0x1p-9 : (8 + fraction) * __builtin_ldexp(1.0, exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}
inline double from_e5m2(std::uint8_t bits) {
  return static_cast<double>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits << 8)));
}

// The value of an element from its bits.
inline double element_value(Element element, std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  switch (element) {
    case Element::kF16: return static_cast<double>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(low)));
    case Element::kBf16: return static_cast<double>(std::bit_cast<float>(low << 16));
    case Element::kTf32: return static_cast<double>(std::bit_cast<float>(low & 0xffffe000u));  // the rest is ignored
    case Element::kF32: return static_cast<double>(std::bit_cast<float>(low));
    case Element::kF64: return std::bit_cast<double>(bits);
    case Element::kS8: return static_cast<std::int8_t>(low);
    case Element::kU8: return static_cast<std::uint8_t>(low);
    case Element::kS4: return static_cast<std::int32_t>(low << 28) >> 28;
    case Element::kU4: return low & 15;
    case Element::kE4m3: return from_e4m3(static_cast<std::uint8_t>(low));
    case Element::kE5m2: return from_e5m2(static_cast<std::uint8_t>(low));
    default: return static_cast<std::int32_t>(low);
  }
}

// Element `e` of the lane's registers `rows`.
inline std::uint64_t element_in(Warp& warp, const std::int32_t* rows, Element element, unsigned lane, unsigned e) {
  if (element == Element::kF64) return source<std::uint64_t>(warp, rows[e])[lane];
  const unsigned p = per_register(element), bits = element_bits(element);
  const std::uint32_t word = source<std::uint32_t>(warp, rows[e / p])[lane];
  if (bits == 32) return word;
  return word >> (e % p * bits) & ((1u << bits) - 1);
}

// Puts an element there; the destination's registers are zero before.
inline void put_element(Warp& warp, const std::int32_t* rows, Element element, unsigned lane, unsigned e,
                        std::uint64_t bits) {
  if (element == Element::kF64) {
    row<std::uint64_t>(warp, rows[e])[lane] = bits;
    return;
  }
  const unsigned p = per_register(element);
  std::uint32_t& word = row<std::uint32_t>(warp, rows[e / p])[lane];
  word = (e % p == 0 ? 0 : word) | static_cast<std::uint32_t>(bits << (e % p * element_bits(element)));
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
