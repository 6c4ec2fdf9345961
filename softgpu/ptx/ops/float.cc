// f32 and f64 arithmetic: add sub mul fma mad div min max neg abs sqrt rcp copysign testp, with .ftz, .sat and the four
// rounding modes. Round to nearest is the vectorised path; the directed modes change the CPU's rounding mode around one
// row at a time.
#include <cfenv>
#include <cfloat>
#include <cmath>

#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

struct Add {
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct Subtract {
  template <class T>
  static T apply(T a, T b) {
    return a - b;
  }
};
struct Multiply {
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};
struct Divide {
  template <class T>
  static T apply(T a, T b) {
    return a / b;
  }
};
struct FusedMultiplyAdd {
  static float apply(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double apply(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
// The operand that is a number wins; -0 is less than +0.
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    const T less = a < b || (a == b && __builtin_signbit(a)) ? a : b;
    return a != a ? b : (b != b ? a : less);
  }
};
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    const T more = a > b || (a == b && !__builtin_signbit(a)) ? a : b;
    return a != a ? b : (b != b ? a : more);
  }
};
template <class Op>
struct PropagateNan {
  template <class T>
  static T apply(T a, T b) {
    return a != a || b != b ? static_cast<T>(__builtin_nan("")) : Op::apply(a, b);
  }
};
// .xorsign.abs: of the magnitudes, with the sign of the product.
template <class Op>
struct XorSign {
  static float apply(float a, float b) {
    const float magnitude = Op::apply(__builtin_fabsf(a), __builtin_fabsf(b));
    return __builtin_signbit(a) != __builtin_signbit(b) ? -magnitude : magnitude;
  }
};
struct Negate {
  template <class T>
  static T apply(T a) {
    return -a;
  }
};
struct Absolute {
  static float apply(float a) { return __builtin_fabsf(a); }
  static double apply(double a) { return __builtin_fabs(a); }
};
struct SquareRoot {
  static float apply(float a) { return __builtin_sqrtf(a); }
  static double apply(double a) { return __builtin_sqrt(a); }
};
struct Reciprocal {
  template <class T>
  static T apply(T a) {
    return T{1} / a;
  }
};
struct CopySign {  // the sign of the first operand, the magnitude of the second
  static float apply(float a, float b) { return __builtin_copysignf(b, a); }
  static double apply(double a, double b) { return __builtin_copysign(b, a); }
};
struct Saturate {
  template <class T>
  static T apply(T a) {
    return a > T{0} ? (a < T{1} ? a : T{1}) : T{0};
  }
};

float flush(float value) {
  return __builtin_fabsf(value) < FLT_MIN ? __builtin_copysignf(0.0f, value) : value;
}
template <class Op>
struct FlushSubnormals {
  template <class... T>
  static float apply(T... values) {
    return flush(Op::apply(flush(values)...));
  }
};

// ---- directed rounding

enum class Operation : std::uint16_t { kAdd, kSubtract, kMultiply, kDivide, kFma, kSquareRoot, kReciprocal };
constexpr int kHostModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

// Volatile values keep the compiler from moving the arithmetic out of the region with the changed rounding mode.
template <class T>
T compute(Operation operation, volatile T& a, volatile T& b, volatile T& c) {
  volatile T result = 0;
  switch (operation) {
    case Operation::kAdd: result = a + b; break;
    case Operation::kSubtract: result = a - b; break;
    case Operation::kMultiply: result = a * b; break;
    case Operation::kDivide: result = a / b; break;
    case Operation::kFma: result = FusedMultiplyAdd::apply(T{a}, T{b}, T{c}); break;
    case Operation::kSquareRoot: result = SquareRoot::apply(T{a}); break;
    case Operation::kReciprocal: result = T{1} / a; break;
  }
  return result;
}

// mode: rounding, then operation, then whether subnormals are flushed.
template <class T>
[[gnu::noinline]] const Instruction* directed(Warp& warp, const Instruction* at) {
  const auto operation = static_cast<Operation>(at->mode >> 2 & 7);
  const bool flushes = (at->mode >> 5 & 1) != 0;
  const T* a = source<T>(warp, at->a);
  const T* b = at->b == kNoRow ? a : source<T>(warp, at->b);
  const T* c = at->c == kNoRow ? a : source<T>(warp, at->c);
  const auto prepare = [&](T value) -> T {
    if constexpr (sizeof(T) == 4) return flushes ? flush(value) : value;
    return value;
  };
  T values[kLanes];
  const int before = std::fegetround();
  std::fesetround(kHostModes[at->mode & 3]);
  for (int lane = 0; lane < kLanes; ++lane) {
    volatile T x = prepare(a[lane]), y = prepare(b[lane]), z = prepare(c[lane]);
    values[lane] = prepare(compute<T>(operation, x, y, z));
  }
  std::fesetround(before);
  blend(row<T>(warp, at->dst), values, warp.mask);
  return at + 1;
}

// ---- testp

enum class Property : std::uint16_t { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };

template <class T>
bool has_property(T value, Property property) {
  const int kind = __builtin_fpclassify(0, 1, 2, 3, 4, value);  // NaN, infinite, normal, subnormal, zero
  switch (property) {
    case Property::kFinite: return kind >= 2;
    case Property::kInfinite: return kind == 1;
    case Property::kNumber: return kind != 0;
    case Property::kNotANumber: return kind == 0;
    case Property::kNormal: return kind == 2 || kind == 4;  // PTX counts both zeros among the normal numbers
    case Property::kSubnormal: return kind == 3;
  }
  return false;
}

template <class T>
const Instruction* test_property(Warp& warp, const Instruction* at) {
  const T* a = source<T>(warp, at->a);
  std::uint32_t result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    result |= static_cast<std::uint32_t>(has_property(a[lane], static_cast<Property>(at->mode))) << lane;
  }
  set_predicate(warp, at->dst, result);
  return at + 1;
}

// ---- decoding

int take_rounding(Decoder& decoder) {
  if (decoder.text.take("rz")) return 1;
  if (decoder.text.take("rm")) return 2;
  if (decoder.text.take("rp")) return 3;
  decoder.text.take("rn");
  return 0;
}

template <class Op>
Handler unary_handler(Type type, bool flushes) {
  if (flushes) return type == Type::kF32 ? unary<FlushSubnormals<Op>, float, float> : nullptr;
  return with_float(type, [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return unary<Op, T, T>;
  });
}
template <class Op>
Handler binary_handler(Type type, bool flushes) {
  if (flushes) return type == Type::kF32 ? binary<FlushSubnormals<Op>, float, float> : nullptr;
  return with_float(type, [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return binary<Op, T, T>;
  });
}
template <class Op>
Handler ternary_handler(Type type, bool flushes) {
  if (flushes) return type == Type::kF32 ? ternary<FlushSubnormals<Op>, float, float> : nullptr;
  return with_float(type, [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return ternary<Op, T, T>;
  });
}
Handler directed_handler(Type type) {
  return with_float(type, [](auto tag) -> Handler { return directed<typename decltype(tag)::type>; });
}

void saturate(Decoder& decoder, Type type, std::int32_t dst) {
  Instruction& instruction = decoder.writer.emit(unary_handler<Saturate>(type, false));
  instruction.dst = dst;
  instruction.a = dst;
}

struct Variant {
  int rounding = 0;
  bool flushes = false;
  bool saturates = false;
};

Variant take_variant(Decoder& decoder) {
  return {take_rounding(decoder), decoder.text.take("ftz"), decoder.text.take("sat")};
}

// Emits the vectorised handler, or for a directed rounding mode the general one.
void emit_rounded(Decoder& decoder, Type type, Operation operation, Variant variant, Handler nearest,
                  std::size_t sources) {
  if (!decoder.text.expect_operands(sources + 1, sources + 1)) return;
  const auto operands = decoder.text.operands();
  const auto a = decoder.rows.read(operands[1], type);
  const auto b = sources > 1 ? decoder.rows.read(operands[2], type) : kNoRow;
  const auto c = sources > 2 ? decoder.rows.read(operands[3], type) : kNoRow;
  const auto dst = decoder.rows.write(operands[0], type);
  Instruction& instruction = decoder.writer.emit(variant.rounding != 0 ? directed_handler(type) : nearest);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
  instruction.c = c;
  const int flush_bit = variant.flushes ? 1 << 5 : 0;
  instruction.mode = static_cast<std::uint16_t>(variant.rounding | static_cast<int>(operation) << 2 | flush_bit);
  if (variant.saturates) saturate(decoder, type, dst);
}

template <class Op>
Handler extremum_handler(Decoder& decoder, Type type) {
  const bool flushes = decoder.text.take("ftz"), propagates = decoder.text.take("NaN");
  if (!decoder.text.take("xorsign")) {
    return propagates ? binary_handler<PropagateNan<Op>>(type, flushes) : binary_handler<Op>(type, flushes);
  }
  decoder.text.take("abs");
  if (type != Type::kF32) return nullptr;
  if (flushes) {
    return propagates ? binary<FlushSubnormals<XorSign<PropagateNan<Op>>>, float, float>
                      : binary<FlushSubnormals<XorSign<Op>>, float, float>;
  }
  return propagates ? binary<XorSign<PropagateNan<Op>>, float, float> : binary<XorSign<Op>, float, float>;
}

void decode_min_max(Decoder& decoder, Type type) {
  const Handler handler = decoder.text.opcode() == "min" ? extremum_handler<Minimum>(decoder, type)
                                                         : extremum_handler<Maximum>(decoder, type);
  emit_binary(decoder, handler, type, type, type);
}

void decode_sign(Decoder& decoder, Type type) {
  const bool flushes = decoder.text.take("ftz");
  const Handler handler =
      decoder.text.opcode() == "neg" ? unary_handler<Negate>(type, flushes) : unary_handler<Absolute>(type, flushes);
  emit_unary(decoder, handler, type, type);
}

void decode_root(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  decoder.text.take("approx");
  const Variant variant = take_variant(decoder);
  const bool is_root = decoder.text.opcode() == "sqrt";
  // .approx.ftz.f64 has no subnormal results to flush.
  const bool flushes = variant.flushes && type == Type::kF32;
  const Handler nearest = is_root ? unary_handler<SquareRoot>(type, flushes) : unary_handler<Reciprocal>(type, flushes);
  emit_rounded(decoder, type, is_root ? Operation::kSquareRoot : Operation::kReciprocal, variant, nearest, 1);
}

void decode_copysign(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  emit_binary(decoder, binary_handler<CopySign>(type, false), type, type, type);
}

void decode_test(Decoder& decoder) {
  constexpr std::string_view kNames[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  const Type type = decoder.text.take_type();
  std::uint16_t property = 0;
  while (property < std::size(kNames) && !decoder.text.take(kNames[property])) ++property;
  if (property == std::size(kNames)) return decoder.text.refuse("the property is missing", LoadError::Kind::kSyntax);
  if (!decoder.text.expect_operands(2, 2)) return;
  const auto a = decoder.rows.read(decoder.text.operands()[1], type);
  const auto dst = decoder.rows.write_predicate(decoder.text.operands()[0]);
  Instruction& instruction = decoder.writer.emit(
      with_float(type, [](auto tag) -> Handler { return test_property<typename decltype(tag)::type>; }));
  instruction.dst = dst;
  instruction.a = a;
  instruction.mode = property;
}

constexpr Opcode kOpcodes[] = {
    {"sqrt", decode_root}, {"rcp", decode_root}, {"copysign", decode_copysign}, {"testp", decode_test}};

}  // namespace

void decode_float_arithmetic(Decoder& decoder, Type type) {
  const std::string_view name = decoder.text.opcode();
  if (name == "min" || name == "max") return decode_min_max(decoder, type);
  if (name == "neg" || name == "abs") return decode_sign(decoder, type);
  if (name == "div" && !decoder.text.take("approx")) decoder.text.take("full");
  const Variant variant = take_variant(decoder);
  const bool flushes = variant.flushes;
  if (name == "add") {
    return emit_rounded(decoder, type, Operation::kAdd, variant, binary_handler<Add>(type, flushes), 2);
  }
  if (name == "sub") {
    return emit_rounded(decoder, type, Operation::kSubtract, variant, binary_handler<Subtract>(type, flushes), 2);
  }
  if (name == "mul") {
    return emit_rounded(decoder, type, Operation::kMultiply, variant, binary_handler<Multiply>(type, flushes), 2);
  }
  if (name == "div") {
    return emit_rounded(decoder, type, Operation::kDivide, variant, binary_handler<Divide>(type, flushes), 2);
  }
  emit_rounded(decoder, type, Operation::kFma, variant, ternary_handler<FusedMultiplyAdd>(type, flushes), 3);
}

std::span<const Opcode> float_opcodes() {
  return kOpcodes;
}

void add_float_meanings(native::Meanings& meanings) {
  using native::Action;
  const auto add = [&](Handler narrow, Handler wide, bool commutes, std::uint8_t code) {
    meanings[narrow] = {Action::kBinary, 4, commutes, {1, 0, 0, code}};
    meanings[wide] = {Action::kBinary, 8, commutes, {1, 1, 0, code}};
  };
  add(binary<Add, float, float>, binary<Add, double, double>, true, 0x58);
  add(binary<Subtract, float, float>, binary<Subtract, double, double>, false, 0x5c);
  add(binary<Multiply, float, float>, binary<Multiply, double, double>, true, 0x59);
  add(binary<Divide, float, float>, binary<Divide, double, double>, false, 0x5e);
  meanings[ternary<FusedMultiplyAdd, float, float>] = {Action::kFused, 4, true, {2, 1, 0, 0xb8}};
  meanings[ternary<FusedMultiplyAdd, double, double>] = {Action::kFused, 8, true, {2, 1, 1, 0xb8}};
  meanings[unary<SquareRoot, float, float>] = {Action::kUnary, 4, false, {1, 0, 0, 0x51}};
  meanings[unary<SquareRoot, double, double>] = {Action::kUnary, 8, false, {1, 1, 0, 0x51}};
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
