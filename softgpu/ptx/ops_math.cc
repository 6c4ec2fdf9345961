// The special function unit: rsqrt ex2 lg2 sin cos tanh, always approximate in PTX. Results are those of the C library,
// which are closer than the hardware's bounds.
#include <cfloat>
#include <cmath>

#include "softgpu/ptx/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

struct ReciprocalRoot {
  static float apply(float a) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a))); }
  static double apply(double a) { return 1.0 / __builtin_sqrt(a); }
};
struct Exponential2 {
  static float apply(float a) { return __builtin_exp2f(a); }
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
  const Type type = decoder.take_type();
  decoder.take("approx");
  const bool has_half_form = decoder.opcode() == "ex2" || decoder.opcode() == "tanh";
  if (has_half_form && decode_half(decoder, type)) return;
  const Handler handler = decoder.take("ftz") ? unary<FlushSubnormals<Op>, float, float> : unary<Op, float, float>;
  emit_unary(decoder, type == Type::kF32 ? handler : nullptr, type, type);
}

void decode_reciprocal_root(Decoder& decoder) {
  const Type type = decoder.take_type();
  decoder.take("approx");
  const bool flushes = decoder.take("ftz") && type == Type::kF32;
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
