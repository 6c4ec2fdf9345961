// The conversions of cvt that pack or that have formats of their own: pairs of halves from two f32, tf32, pairs of 8-bit
// floats (e4m3x2, e5m2x2), and the saturating packing of integers.
#include <algorithm>
#include <cmath>

#include "softgpu/ptx/ops/fragment.h"
#include "softgpu/ptx/ops/half.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;

// Bits of `mode`, the options of a conversion.
constexpr u16 kTowardsZero = 1;
constexpr u16 kAwayFromZero = 2;  // ties: .rna
constexpr u16 kRelu = 4;
constexpr u16 kFinite = 8;  // too large values become the largest finite one

float prepared(float value, u16 mode) {
  return (mode & kRelu) != 0 && value <= 0 ? 0.0f : value;
}

// ---- pairs of halves

template <class Half>
u16 to_half(float value, u16 mode);

template <u16 kInfinity>
u16 limited(u16 nearest, float back, float value, u16 mode) {
  if (value != value) return 0x7fff;
  const bool is_infinite = (nearest & 0x7fff) == kInfinity;
  if ((mode & kTowardsZero) != 0 && std::fabs(back) > std::fabs(value)) return nearest - 1;
  return (mode & kFinite) != 0 && is_infinite ? nearest - 1 : nearest;
}
template <>
u16 to_half<_Float16>(float value, u16 mode) {
  const auto nearest = static_cast<_Float16>(value);
  return limited<0x7c00>(std::bit_cast<u16>(nearest), static_cast<float>(nearest), value, mode);
}
template <>
u16 to_half<BFloat16>(float value, u16 mode) {
  const BFloat16 nearest = to_bfloat16(value);
  return limited<0x7f80>(nearest.bits, to_float(nearest), value, mode);
}

template <class Half>
const Instruction* pack_halves(Warp& warp, const Instruction* at) {
  const float* high = source<float>(warp, at->a);
  const float* low = source<float>(warp, at->b);
  write_lanes<u32>(warp, at->dst, [&](int lane) {
    const u32 top = to_half<Half>(prepared(high[lane], at->mode), at->mode);
    return top << 16 | to_half<Half>(prepared(low[lane], at->mode), at->mode);
  });
  return at + 1;
}

// ---- tf32: an f32 whose last 13 bits are zero

const Instruction* to_tf32(Warp& warp, const Instruction* at) {
  const float* a = source<float>(warp, at->a);
  write_lanes<u32>(warp, at->dst, [&](int lane) -> u32 {
    constexpr u32 kDropped = 0x1fff, kHalf = 0x1000;
    const float value = prepared(a[lane], at->mode);
    const auto bits = std::bit_cast<u32>(value);
    if (value != value) return 0x7fffffff;
    if ((bits & 0x7f800000) == 0x7f800000) return (at->mode & kFinite) != 0 ? bits - 0x2000 : bits;
    u32 rounding = (at->mode & kTowardsZero) != 0 ? 0 : kHalf;
    if ((at->mode & (kTowardsZero | kAwayFromZero)) == 0) rounding = kHalf - 1 + (bits >> 13 & 1);
    const u32 rounded = (bits + rounding) & ~kDropped;
    const bool overflows = (rounded & 0x7f800000) == 0x7f800000;
    return overflows && (at->mode & kFinite) != 0 ? rounded - 0x2000 : rounded;
  });
  return at + 1;
}

// ---- 8-bit floats

struct Float8 {
  int fraction_bits, smallest_exponent;
  float largest;
  u8 largest_bits;
};
constexpr Float8 kE4m3{3, -6, 448.0f, 0x7e};
constexpr Float8 kE5m2{2, -14, 57344.0f, 0x7b};

// Nearest, ties to even; what is larger than the largest value becomes that one, NaN 0x7f.
u8 to_float8(const Float8& format, float value) {
  if (value != value) return 0x7f;
  const u8 sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::fabs(value);
  if (magnitude >= format.largest) return sign | format.largest_bits;
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), format.smallest_exponent);
  const auto units = static_cast<int>(__builtin_rintf(std::ldexp(magnitude, format.fraction_bits - exponent)));
  // Units beyond the fraction carry into the exponent; less than one whole is subnormal.
  const int code = ((exponent - format.smallest_exponent) << format.fraction_bits) + units;
  return sign | static_cast<u8>(std::min<int>(code, format.largest_bits));
}

template <const Float8& kFormat>
const Instruction* pack_floats(Warp& warp, const Instruction* at) {
  const float* high = source<float>(warp, at->a);
  const float* low = source<float>(warp, at->b);
  write_lanes<u16>(warp, at->dst, [&](int lane) {
    const u16 top = to_float8(kFormat, prepared(high[lane], at->mode));
    return static_cast<u16>(top << 8 | to_float8(kFormat, prepared(low[lane], at->mode)));
  });
  return at + 1;
}

template <const Float8& kFormat>
const Instruction* pack_from_halves(Warp& warp, const Instruction* at) {
  const u32* pairs = source<u32>(warp, at->a);
  write_lanes<u16>(warp, at->dst, [&](int lane) {
    const auto convert = [&](u32 half) {
      const auto value = static_cast<float>(std::bit_cast<_Float16>(static_cast<u16>(half)));
      return to_float8(kFormat, prepared(value, at->mode));
    };
    return static_cast<u16>(convert(pairs[lane] >> 16) << 8 | convert(pairs[lane]));
  });
  return at + 1;
}

template <double (*kValue)(u8)>
const Instruction* unpack_floats(Warp& warp, const Instruction* at) {
  const u16* pairs = source<u16>(warp, at->a);
  write_lanes<u32>(warp, at->dst, [&](int lane) {
    const auto convert = [&](int byte) -> u32 {
      return to_half<_Float16>(prepared(static_cast<float>(kValue(static_cast<u8>(byte))), at->mode), 0);
    };
    return convert(pairs[lane] >> 8) << 16 | convert(pairs[lane] & 255);
  });
  return at + 1;
}

// ---- integers

// cvt.pack: a and b saturated to `bits` bits side by side, b lower; c, shifted, fills what is above.
struct PackFormat {
  std::string_view name;
  int bits;
  std::int64_t least, most;
};
constexpr PackFormat kPackFormats[] = {
    {"u16", 16, 0, 65535}, {"s16", 16, -32768, 32767}, {"u8", 8, 0, 255}, {"s8", 8, -128, 127},
    {"u4", 4, 0, 15},      {"s4", 4, -8, 7},           {"u2", 2, 0, 3},   {"s2", 2, -2, 1}};

// mode: the format, and bit 8: a and b are signed.
const Instruction* pack_integers(Warp& warp, const Instruction* at) {
  const PackFormat& format = kPackFormats[at->mode & 7];
  const bool is_signed_source = (at->mode & 256) != 0;
  const u32* a = source<u32>(warp, at->a);
  const u32* b = source<u32>(warp, at->b);
  const u32* c = at->c == kNoRow ? nullptr : source<u32>(warp, at->c);
  const auto saturated = [&](u32 bits) {
    const std::int64_t value = is_signed_source ? std::int64_t{static_cast<std::int32_t>(bits)} : std::int64_t{bits};
    return static_cast<u32>(std::clamp(value, format.least, format.most)) & ((1u << format.bits) - 1);
  };
  write_lanes<u32>(warp, at->dst, [&](int lane) {
    const u32 pair = saturated(a[lane]) << format.bits | saturated(b[lane]);
    return c == nullptr ? pair : c[lane] << (2 * format.bits) | pair;
  });
  return at + 1;
}

// ---- decoding

u16 take_options(Decoder& decoder) {
  u16 options = 0;
  decoder.text.take("rn");
  if (decoder.text.take("rz")) options |= kTowardsZero;
  if (decoder.text.take("rna")) options |= kAwayFromZero;
  if (decoder.text.take("relu")) options |= kRelu;
  if (decoder.text.take("satfinite")) options |= kFinite;
  return options;
}

// dst = convert(a) or, with two sources, convert(high, low).
void emit_conversion(Decoder& decoder, Handler handler, u16 options, Type to, Type from, std::size_t sources) {
  if (!decoder.text.expect_operands(sources + 1, sources + 1)) return;
  const auto operands = decoder.text.operands();
  const auto a = decoder.rows.read(operands[1], from);
  const auto b = sources == 2 ? decoder.rows.read(operands[2], from) : kNoRow;
  const auto dst = decoder.rows.write(operands[0], to);
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
  instruction.mode = options;
}

void decode_integers(Decoder& decoder) {
  decoder.text.take("sat");
  u16 format = 0;
  while (format < std::size(kPackFormats) && !decoder.text.take(kPackFormats[format].name)) ++format;
  const Type from = decoder.text.take_type();
  const bool fills = decoder.text.take("b32");
  if (format == std::size(kPackFormats) || (from != Type::kS32 && from != Type::kU32)) {
    return decoder.text.refuse("this combination of types is not supported");
  }
  if (!decoder.text.expect_operands(fills ? 4 : 3, fills ? 4 : 3)) return;
  const auto operands = decoder.text.operands();
  const auto a = decoder.rows.read(operands[1], from), b = decoder.rows.read(operands[2], from);
  const auto c = fills ? decoder.rows.read(operands[3], Type::kU32) : kNoRow;
  const auto dst = decoder.rows.write(operands[0], Type::kU32);
  Instruction& instruction = decoder.writer.emit(pack_integers);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
  instruction.c = c;
  instruction.mode = static_cast<u16>(format | (from == Type::kS32 ? 256 : 0));
}

// cvt.f16x2.e4m3x2 and cvt.e4m3x2.{f32,f16x2}.
void decode_float8(Decoder& decoder, bool is_e4m3) {
  const u16 options = take_options(decoder);
  const Type other = decoder.text.take_type();
  const bool packs_first = other == Type::kF32;
  if (packs_first) {
    return emit_conversion(decoder, is_e4m3 ? pack_floats<kE4m3> : pack_floats<kE5m2>, options, Type::kU16, Type::kF32,
                           2);
  }
  if (other != Type::kF16x2) return decoder.text.refuse("this combination of types is not supported");
  // Only packing must saturate.
  if ((options & kFinite) != 0) {
    return emit_conversion(decoder, is_e4m3 ? pack_from_halves<kE4m3> : pack_from_halves<kE5m2>, options, Type::kU16,
                           Type::kU32, 1);
  }
  emit_conversion(decoder, is_e4m3 ? unpack_floats<from_e4m3> : unpack_floats<from_e5m2>, options, Type::kU32,
                  Type::kU16, 1);
}

}  // namespace

bool decode_packed_conversion(Decoder& decoder) {
  if (decoder.text.take("pack")) {
    decode_integers(decoder);
    return true;
  }
  const bool is_e4m3 = decoder.text.take("e4m3x2");
  if (is_e4m3 || decoder.text.take("e5m2x2")) {
    decode_float8(decoder, is_e4m3);
    return true;
  }
  const bool is_f16 = decoder.text.contains("f16x2"), is_bf16 = decoder.text.contains("bf16x2");
  const bool is_tf32 = decoder.text.take("tf32");
  if (!is_f16 && !is_bf16 && !is_tf32) return false;
  const u16 options = take_options(decoder);
  if (!is_tf32) decoder.text.take_type();
  if (decoder.text.take_type() != Type::kF32) {
    decoder.text.refuse("this combination of types is not supported");
  } else if (is_tf32) {
    emit_conversion(decoder, to_tf32, options, Type::kU32, Type::kF32, 1);
  } else {
    emit_conversion(decoder, is_f16 ? pack_halves<_Float16> : pack_halves<BFloat16>, options, Type::kU32, Type::kF32,
                    2);
  }
  return true;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
