// The special function unit: rsqrt ex2 lg2 sin cos tanh, always approximate in PTX. Results are those of the C library
// or as close, which is closer than the hardware's bounds.
#include <cfloat>
#include <cmath>
#include <cstring>

#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

struct ReciprocalRoot {
  static float apply(float a) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a))); }
  static double apply(double a) { return 1.0 / __builtin_sqrt(a); }
};
// 2^a = 2^n * 2^r with n = round(a), |r| <= 1/2, in double precision: the Taylor series of e^(r ln 2) to the ninth term
// errs by less than 3e-10, half a thousandth of the last bit of a float. Unlike the C library's it is vectorised.
struct Exponential2 {
  static float apply(float a) {
    constexpr double kRounder = 0x1.8p52;  // a sum with it holds its integer part in the low bits
    constexpr double kTerms[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c58fp-3,  0x1.c6b08d704a0cp-5,
                                 0x1.3b2ab6fba4e77p-7,  0x1.5d87fe78a6731p-10, 0x1.430912f86c787p-13,
                                 0x1.ffcbfc588b0c7p-17, 0x1.62c0223a5c824p-20};  // (ln 2)^k / k!
    const double low = a < -160.0f ? -160.0 : static_cast<double>(a);
    const double x = low > 130.0 ? 130.0 : low;
    const double sum = x + kRounder;
    const double r = x - (sum - kRounder);
    double power = kTerms[7];
    for (int k = 6; k >= 0; --k) power = power * r + kTerms[k];
    power = power * r + 1.0;
    std::uint64_t bits, exponent;
    std::memcpy(&bits, &power, sizeof bits);
    std::memcpy(&exponent, &sum, sizeof exponent);
    bits += exponent << 52;
    std::memcpy(&power, &bits, sizeof bits);
    return a != a ? a : static_cast<float>(power);
  }
};
struct Logarithm2 {
  static float apply(float a) { return __builtin_log2f(a); }
};
struct Sine {
  static float apply(float a) { return __builtin_sinf(a); }
};
struct Cosine {
  static float apply(float a) { return __builtin_cosf(a); }
};
struct HyperbolicTangent {
  static float apply(float a) { return __builtin_tanhf(a); }
};

float flush(float value) {
  return __builtin_fabsf(value) < FLT_MIN ? __builtin_copysignf(0.0f, value) : value;
}
template <class Op>
struct FlushSubnormals {
  static float apply(float a) { return flush(Op::apply(flush(a))); }
};

template <class Op>
void decode_function(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  decoder.text.take("approx");
  const bool has_half_form = decoder.text.opcode() == "ex2" || decoder.text.opcode() == "tanh";
  if (has_half_form && decode_half(decoder, type)) return;
  const Handler handler = decoder.text.take("ftz") ? unary<FlushSubnormals<Op>, float, float> : unary<Op, float, float>;
  emit_unary(decoder, type == Type::kF32 ? handler : nullptr, type, type);
}

void decode_reciprocal_root(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  decoder.text.take("approx");
  const bool flushes = decoder.text.take("ftz") && type == Type::kF32;
  const Handler handler =
      flushes ? unary<FlushSubnormals<ReciprocalRoot>, float, float> : with_float(type, [](auto tag) -> Handler {
        using T = typename decltype(tag)::type;
        return unary<ReciprocalRoot, T, T>;
      });
  emit_unary(decoder, handler, type, type);
}

constexpr Opcode kOpcodes[] = {
    {"rsqrt", decode_reciprocal_root},    {"ex2", decode_function<Exponential2>},
    {"lg2", decode_function<Logarithm2>}, {"sin", decode_function<Sine>},
    {"cos", decode_function<Cosine>},     {"tanh", decode_function<HyperbolicTangent>},
};

}  // namespace

std::span<const Opcode> math_opcodes() {
  return kOpcodes;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
