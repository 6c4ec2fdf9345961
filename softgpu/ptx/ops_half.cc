// Arithmetic on f16, bf16 and packed pairs: add sub mul fma mad min max neg abs. Every operation is exact in double, so
// it rounds once.
#include <cmath>

#include "softgpu/ptx/half.h"
#include "softgpu/ptx/ops.h"

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
    return static_cast<_Float16>(value);
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

}  // namespace

bool decode_half(Decoder& decoder, Type type) {
  if (type != Type::kF16 && type != Type::kBf16 && !is_packed_half(type)) return false;
  const std::string_view name = decoder.opcode();
  decoder.take("rn");
  const bool is_sign = name == "neg" || name == "abs";
  if (is_sign) {
    emit_unary(decoder, sign_handler(type, name == "neg"), type, type);
    return true;
  }
  const Handler handler = name == "add"   ? half_handler<Add>(type)
                          : name == "sub" ? half_handler<Subtract>(type)
                          : name == "mul" ? half_handler<Multiply>(type)
                          : name == "min" ? half_handler<Minimum>(type)
                          : name == "max" ? half_handler<Maximum>(type)
                          : name == "fma" ? half_handler<FusedMultiplyAdd>(type)
                                          : nullptr;
  if (name == "fma") {
    emit_ternary(decoder, handler, type, type, type, type);
  } else {
    emit_binary(decoder, handler, type, type, type);
  }
  return true;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
