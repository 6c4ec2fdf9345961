// Arithmetic on f16, bf16 and packed pairs: add sub mul fma min max neg abs ex2 tanh. Every operation is exact in double,
// so it rounds once. .ftz, .sat and .relu are handlers of their own in front and behind. A NaN result is 0x7fff.
#include <cmath>

#include "softgpu/ptx/ops/half.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

double widen(_Float16 value) {
  return static_cast<double>(value);
}
double widen(BFloat16 value) {
  return static_cast<double>(to_float(value));
}

// Rounds to a half once. For f16 the compiler converts from double directly.
template <class Half>
Half narrow(double value) {
  if constexpr (sizeof(Half) == sizeof(BFloat16) && !std::is_same_v<Half, BFloat16>) {
    return value != value ? std::bit_cast<_Float16>(std::uint16_t{0x7fff}) : static_cast<_Float16>(value);
  } else {
    return to_bfloat16(round_to_odd(value));
  }
}

struct Add {
  static double apply(double a, double b, double) { return a + b; }
};
struct Subtract {
  static double apply(double a, double b, double) { return a - b; }
};
struct Multiply {
  static double apply(double a, double b, double) { return a * b; }
};
struct Minimum {
  static double apply(double a, double b, double) {
    if (a != a) return b;
    if (b != b) return a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  }
};
struct Maximum {
  static double apply(double a, double b, double) {
    if (a != a) return b;
    if (b != b) return a;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
  }
};

template <class Op>
struct PropagateNan {
  static double apply(double a, double b, double) { return a != a || b != b ? a + b : Op::apply(a, b, 0); }
};
// .xorsign.abs: of the magnitudes, with the sign of the product.
template <class Op>
struct XorSign {
  static double apply(double a, double b, double) {
    const double magnitude = Op::apply(std::fabs(a), std::fabs(b), 0);
    return std::signbit(a) != std::signbit(b) ? -magnitude : magnitude;
  }
};
struct Exponential2 {
  static double apply(double a, double, double) { return std::exp2(a); }
};
struct HyperbolicTangent {
  static double apply(double a, double, double) { return std::tanh(a); }
};

// The product of two halves is exact in double; the sum is rounded to odd, so that rounding to a half cannot err.
struct FusedMultiplyAdd {
  static double apply(double a, double b, double c) {
    const double product = a * b;
    const double sum = product + c;
    const double virtual_c = sum - product;
    const double error = (product - (sum - virtual_c)) + (c - virtual_c);
    auto bits = std::bit_cast<std::uint64_t>(sum);
    if (error == 0 || error != error || (bits & 1) != 0) return sum;
    bits = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;
    return std::bit_cast<double>(bits);
  }
};

template <class Half, class Op>
std::uint16_t compute(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  const auto value = [](std::uint16_t bits) { return widen(std::bit_cast<Half>(bits)); };
  return std::bit_cast<std::uint16_t>(narrow<Half>(Op::apply(value(a), value(b), value(c))));
}

// kParts: 1 for a single half, 2 for a pair in one 32-bit register.
template <class Half, class Op, int kParts>
const Instruction* half_operation(Warp& warp, const Instruction* at) {
  const auto* a = reinterpret_cast<const std::uint16_t*>(source<std::byte>(warp, at->a));
  const auto* b = at->b == kNoRow ? a : reinterpret_cast<const std::uint16_t*>(source<std::byte>(warp, at->b));
  const auto* c = at->c == kNoRow ? a : reinterpret_cast<const std::uint16_t*>(source<std::byte>(warp, at->c));
  alignas(kRowAlignment) std::uint16_t values[kLanes * kParts];
  for (int i = 0; i < kLanes * kParts; ++i) values[i] = compute<Half, Op>(a[i], b[i], c[i]);
  if constexpr (kParts == 1) {
    blend(row<std::uint16_t>(warp, at->dst), values, warp.mask);
  } else {
    alignas(kRowAlignment) std::uint32_t pairs[kLanes];
    std::memcpy(pairs, values, sizeof pairs);
    blend(row<std::uint32_t>(warp, at->dst), pairs, warp.mask);
  }
  return at + 1;
}

// neg and abs only touch the sign bits.
template <class Word>
struct FlipSign {
  static Word apply(Word a) { return static_cast<Word>(a ^ static_cast<Word>(0x80008000u)); }
};
template <class Word>
struct ClearSign {
  static Word apply(Word a) { return static_cast<Word>(a & static_cast<Word>(0x7fff7fffu)); }
};

// Results in bits, for handlers in front of and behind the operation. kInfinity is the type's: 0x7c00 or 0x7f80.
template <std::uint16_t kInfinity>
struct Flush {
  static std::uint16_t apply(std::uint16_t a) { return (a & kInfinity) == 0 ? a & 0x8000 : a; }
};
template <std::uint16_t kInfinity>
struct Relu {
  static std::uint16_t apply(std::uint16_t a) {
    if ((a & 0x7fff) > kInfinity) return 0x7fff;
    return (a & 0x8000) != 0 ? 0 : a;
  }
};
struct Saturate {  // f16 only
  static std::uint16_t apply(std::uint16_t a) {
    constexpr std::uint16_t kOne = 0x3c00, kInfinity = 0x7c00;
    if ((a & 0x8000) != 0 || (a & 0x7fff) > kInfinity) return 0;
    return a > kOne ? kOne : a;
  }
};
template <class Op>
struct BothHalves {
  static std::uint32_t apply(std::uint32_t a) {
    const std::uint32_t high = Op::apply(static_cast<std::uint16_t>(a >> 16));
    return high << 16 | Op::apply(static_cast<std::uint16_t>(a));
  }
};

template <class Op>
Handler bits_handler(Type type) {
  if (is_packed_half(type)) return unary<BothHalves<Op>, std::uint32_t, std::uint32_t>;
  return unary<Op, std::uint16_t, std::uint16_t>;
}
template <template <std::uint16_t> class Op>
Handler typed_bits_handler(Type type) {
  const bool is_f16 = type == Type::kF16 || type == Type::kF16x2;
  return is_f16 ? bits_handler<Op<0x7c00>>(type) : bits_handler<Op<0x7f80>>(type);
}

template <class Op>
Handler half_handler(Type type) {
  switch (type) {
    case Type::kF16: return half_operation<_Float16, Op, 1>;
    case Type::kBf16: return half_operation<BFloat16, Op, 1>;
    case Type::kF16x2: return half_operation<_Float16, Op, 2>;
    default: return half_operation<BFloat16, Op, 2>;
  }
}

Handler sign_handler(Type type, bool negates) {
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  if (size_of(type) == 2) return negates ? unary<FlipSign<u16>, u16, u16> : unary<ClearSign<u16>, u16, u16>;
  return negates ? unary<FlipSign<u32>, u32, u32> : unary<ClearSign<u32>, u32, u32>;
}

template <class Op>
Handler extremum_handler(Decoder& decoder, Type type) {
  const bool propagates = decoder.text.take("NaN");
  if (!decoder.text.take("xorsign")) return propagates ? half_handler<PropagateNan<Op>>(type) : half_handler<Op>(type);
  decoder.text.take("abs");
  return propagates ? half_handler<XorSign<PropagateNan<Op>>>(type) : half_handler<XorSign<Op>>(type);
}

Handler take_handler(Decoder& decoder, Type type) {
  const std::string_view name = decoder.text.opcode();
  if (name == "add") return half_handler<Add>(type);
  if (name == "sub") return half_handler<Subtract>(type);
  if (name == "mul") return half_handler<Multiply>(type);
  if (name == "fma") return half_handler<FusedMultiplyAdd>(type);
  if (name == "min") return extremum_handler<Minimum>(decoder, type);
  if (name == "max") return extremum_handler<Maximum>(decoder, type);
  if (name == "ex2") return half_handler<Exponential2>(type);
  if (name == "tanh") return half_handler<HyperbolicTangent>(type);
  if (name == "neg" || name == "abs") return sign_handler(type, name == "neg");
  return nullptr;
}

}  // namespace

bool decode_half(Decoder& decoder, Type type) {
  if (type != Type::kF16 && type != Type::kBf16 && !is_packed_half(type)) return false;
  const Handler handler = take_handler(decoder, type);
  decoder.text.take("rn");
  const bool flushes = decoder.text.take("ftz"), relu = decoder.text.take("relu"), saturates = decoder.text.take("sat");
  if (saturates && type != Type::kF16 && type != Type::kF16x2) {
    decoder.text.refuse(".sat of bf16 does not exist");
    return true;
  }
  const std::string_view name = decoder.text.opcode();
  const bool is_unary = name == "neg" || name == "abs" || name == "ex2" || name == "tanh";
  const std::size_t sources = is_unary ? 1 : name == "fma" ? 3 : 2;
  if (!decoder.text.expect_operands(sources + 1, sources + 1)) return true;
  std::int32_t rows[3] = {kNoRow, kNoRow, kNoRow};
  for (std::size_t i = 0; i < sources; ++i) {
    rows[i] = decoder.rows.read(decoder.text.operands()[i + 1], type);
    if (flushes) rows[i] = emit_prepared(decoder, typed_bits_handler<Flush>(type), rows[i]);
  }
  const auto dst = decoder.rows.write(decoder.text.operands()[0], type);
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = rows[0];
  instruction.b = rows[1];
  instruction.c = rows[2];
  if (flushes) emit_in_place(decoder, typed_bits_handler<Flush>(type), dst);
  if (relu) emit_in_place(decoder, typed_bits_handler<Relu>(type), dst);
  if (saturates) emit_in_place(decoder, bits_handler<Saturate>(type), dst);
  return true;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
