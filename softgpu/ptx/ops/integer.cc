// Integer arithmetic: add sub mul mad div rem min max neg abs sad, 24-bit forms, dp4a.
#include <limits>
#include <type_traits>

#include "softgpu/ptx/ops/integers.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
constexpr int kBits = sizeof(T) * 8;

// Arithmetic wraps; it is done in an unsigned type of at least 32 bits, where C++ wraps, too.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) < 4, std::uint32_t, Unsigned<T>>;

struct Add {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Subtract {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct AddSaturating {
  static std::int32_t apply(std::int32_t a, std::int32_t b) {
    const std::int64_t sum = std::int64_t{a} + b;
    const std::int64_t low = sum < INT32_MIN ? INT32_MIN : sum;
    return static_cast<std::int32_t>(low > INT32_MAX ? INT32_MAX : low);
  }
};
struct SubtractSaturating {
  static std::int32_t apply(std::int32_t a, std::int32_t b) {
    const std::int64_t sum = std::int64_t{a} - b;
    const std::int64_t low = sum < INT32_MIN ? INT32_MIN : sum;
    return static_cast<std::int32_t>(low > INT32_MAX ? INT32_MAX : low);
  }
};
struct MultiplyLow {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct MultiplyHigh {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (sizeof(T) == 8) {
      using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
      return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> 64);
    } else {
      using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> kBits<T>);
    }
  }
};
template <class Wide>
struct MultiplyWide {
  template <class T>
  static Wide apply(T a, T b) {
    return static_cast<Wide>(static_cast<Wide>(a) * static_cast<Wide>(b));
  }
};
template <class Product>
struct MultiplyAdd {
  template <class T, class C>
  static C apply(T a, T b, C c) {
    return Add::apply(static_cast<C>(Product::apply(a, b)), c);
  }
};
struct MultiplyHighAddSaturating {
  static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) {
    return AddSaturating::apply(MultiplyHigh::apply(a, b), c);
  }
};

// mul24: the operands are the low 24 bits; .hi is bits 16 to 47 of the product.
template <bool kHigh>
struct Multiply24 {
  template <class T>
  static T apply(T a, T b) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    const auto cut = [](T value) {
      return static_cast<Wide>(static_cast<T>(static_cast<Unsigned<T>>(value) << 8) >> 8);
    };
    return static_cast<T>((cut(a) * cut(b)) >> (kHigh ? 16 : 0));
  }
};

// Division by zero gives all ones, and a remainder of the dividend, as the hardware does; PTX leaves both open.
struct Divide {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Subtract::apply(T{0}, a);
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct Negate {
  template <class T>
  static T apply(T a) {
    return Subtract::apply(T{0}, a);
  }
};
struct Absolute {
  template <class T>
  static T apply(T a) {
    return a < 0 ? Subtract::apply(T{0}, a) : a;
  }
};
struct SumOfAbsoluteDifferences {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(c, a < b ? Subtract::apply(b, a) : Subtract::apply(a, b));
  }
};

template <bool kSignedA, bool kSignedB>
struct DotProduct4 {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    for (int byte = 0; byte < 4; ++byte) {
      const auto x = static_cast<std::uint8_t>(a >> (8 * byte));
      const auto y = static_cast<std::uint8_t>(b >> (8 * byte));
      const int left = kSignedA ? static_cast<std::int8_t>(x) : x;
      const int right = kSignedB ? static_cast<std::int8_t>(y) : y;
      c += static_cast<std::uint32_t>(left * right);
    }
    return c;
  }
};
template <bool kSignedA, bool kSignedB, int kShift>
struct DotProduct2 {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    for (int half = 0; half < 2; ++half) {
      const auto x = static_cast<std::uint16_t>(a >> (16 * half));
      const auto y = static_cast<std::uint8_t>(b >> (8 * half + kShift));
      const int left = kSignedA ? static_cast<std::int16_t>(x) : x;
      const int right = kSignedB ? static_cast<std::int8_t>(y) : y;
      c += static_cast<std::uint32_t>(left * right);
    }
    return c;
  }
};

template <class Op>
Handler unary_handler(Type type) {
  return with_integer(type, [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return unary<Op, T, T>;
  });
}
template <class Op>
Handler binary_handler(Type type) {
  return with_integer(type, [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return binary<Op, T, T>;
  });
}
template <class Op>
Handler ternary_handler(Type type) {
  return with_integer(type, [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return ternary<Op, T, T>;
  });
}

template <class T>
struct Wider;
template <>
struct Wider<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct Wider<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct Wider<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct Wider<std::int32_t> {
  using type = std::int64_t;
};

Type wider(Type type) {
  switch (type) {
    case Type::kU16: return Type::kU32;
    case Type::kS16: return Type::kS32;
    case Type::kU32: return Type::kU64;
    default: return Type::kS64;
  }
}

template <class Op>
void decode_binary(Decoder& decoder, Type type) {
  emit_binary(decoder, binary_handler<Op>(type), type, type, type);
}

void decode_add(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  if (decode_half(decoder, type) || decode_carry(decoder, type)) return;
  if (is_float(type)) return decode_float_arithmetic(decoder, type);
  const bool adds = decoder.text.opcode() == "add";
  if (type == Type::kS32 && decoder.text.take("sat")) {
    const Handler handler = adds ? binary<AddSaturating, std::int32_t, std::int32_t>
                                 : binary<SubtractSaturating, std::int32_t, std::int32_t>;
    return emit_binary(decoder, handler, type, type, type);
  }
  return adds ? decode_binary<Add>(decoder, type) : decode_binary<Subtract>(decoder, type);
}

void decode_wide_multiply(Decoder& decoder, Type type, bool adds) {
  const auto pick = [&]<class T>(Tag<T>) -> Handler {
    using Wide = typename Wider<T>::type;
    if (adds) return ternary<MultiplyAdd<MultiplyWide<Wide>>, Wide, T, T, Wide>;
    return binary<MultiplyWide<Wide>, Wide, T>;
  };
  Handler handler = nullptr;
  switch (type) {
    case Type::kU16: handler = pick(Tag<std::uint16_t>{}); break;
    case Type::kS16: handler = pick(Tag<std::int16_t>{}); break;
    case Type::kU32: handler = pick(Tag<std::uint32_t>{}); break;
    case Type::kS32: handler = pick(Tag<std::int32_t>{}); break;
    default: break;
  }
  const Type result = wider(type);
  return adds ? emit_ternary(decoder, handler, result, type, type, result)
              : emit_binary(decoder, handler, result, type, type);
}

void decode_multiply(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  if (decode_half(decoder, type)) return;
  if (is_float(type)) return decode_float_arithmetic(decoder, type);
  if (decoder.text.take("wide")) return decode_wide_multiply(decoder, type, false);
  if (decoder.text.take("hi")) return decode_binary<MultiplyHigh>(decoder, type);
  if (decoder.text.take("lo")) return decode_binary<MultiplyLow>(decoder, type);
  decoder.text.refuse("one of .lo, .hi and .wide is missing", LoadError::Kind::kSyntax);
}

void decode_multiply_add(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  if (decode_half(decoder, type) || decode_carry(decoder, type)) return;
  if (is_float(type)) return decode_float_arithmetic(decoder, type);
  if (decoder.text.take("wide")) return decode_wide_multiply(decoder, type, true);
  if (decoder.text.take("lo")) {
    return emit_ternary(decoder, ternary_handler<MultiplyAdd<MultiplyLow>>(type), type, type, type, type);
  }
  if (!decoder.text.take("hi"))
    return decoder.text.refuse("one of .lo, .hi and .wide is missing", LoadError::Kind::kSyntax);
  const bool saturates = type == Type::kS32 && decoder.text.take("sat");
  const Handler handler = saturates ? ternary<MultiplyHighAddSaturating, std::int32_t, std::int32_t>
                                    : ternary_handler<MultiplyAdd<MultiplyHigh>>(type);
  emit_ternary(decoder, handler, type, type, type, type);
}

template <class Op>
Handler multiply24_handler(Type type, bool adds) {
  if (type == Type::kU32) {
    return adds ? ternary<MultiplyAdd<Op>, std::uint32_t, std::uint32_t> : binary<Op, std::uint32_t, std::uint32_t>;
  }
  if (type == Type::kS32) {
    return adds ? ternary<MultiplyAdd<Op>, std::int32_t, std::int32_t> : binary<Op, std::int32_t, std::int32_t>;
  }
  return nullptr;
}

void decode_multiply24(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  const bool adds = decoder.text.opcode() == "mad24";
  const bool high = decoder.text.take("hi");
  if (!high && !decoder.text.take("lo")) return decoder.text.refuse(".lo or .hi is missing", LoadError::Kind::kSyntax);
  const Handler handler =
      high ? multiply24_handler<Multiply24<true>>(type, adds) : multiply24_handler<Multiply24<false>>(type, adds);
  return adds ? emit_ternary(decoder, handler, type, type, type, type)
              : emit_binary(decoder, handler, type, type, type);
}

void decode_divide(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  if (is_float(type)) return decode_float_arithmetic(decoder, type);
  decode_binary<Divide>(decoder, type);
}

void decode_remainder(Decoder& decoder) {
  decode_binary<Remainder>(decoder, decoder.text.take_type());
}

void decode_min_max(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  if (decode_half(decoder, type)) return;
  if (is_float(type)) return decode_float_arithmetic(decoder, type);
  return decoder.text.opcode() == "min" ? decode_binary<Minimum>(decoder, type) : decode_binary<Maximum>(decoder, type);
}

void decode_negate(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  if (decode_half(decoder, type)) return;
  if (is_float(type)) return decode_float_arithmetic(decoder, type);
  const Handler handler = decoder.text.opcode() == "neg" ? unary_handler<Negate>(type) : unary_handler<Absolute>(type);
  emit_unary(decoder, is_signed(type) ? handler : nullptr, type, type);
}

void decode_sad(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  emit_ternary(decoder, ternary_handler<SumOfAbsoluteDifferences>(type), type, type, type, type);
}

template <template <bool, bool> class Op>
Handler dot_handler(bool signed_a, bool signed_b) {
  using U = std::uint32_t;
  if (signed_a) return signed_b ? ternary<Op<true, true>, U, U> : ternary<Op<true, false>, U, U>;
  return signed_b ? ternary<Op<false, true>, U, U> : ternary<Op<false, false>, U, U>;
}
template <bool kSignedA, bool kSignedB>
using DotProduct2Low = DotProduct2<kSignedA, kSignedB, 0>;
template <bool kSignedA, bool kSignedB>
using DotProduct2High = DotProduct2<kSignedA, kSignedB, 16>;

void decode_dot_product(Decoder& decoder) {
  const bool signed_a = is_signed(decoder.text.take_type());
  const bool signed_b = is_signed(decoder.text.take_type());
  Handler handler = dot_handler<DotProduct4>(signed_a, signed_b);
  if (decoder.text.opcode() == "dp2a") {
    const bool high = decoder.text.take("hi");
    if (!high && !decoder.text.take("lo"))
      return decoder.text.refuse(".lo or .hi is missing", LoadError::Kind::kSyntax);
    handler = high ? dot_handler<DotProduct2High>(signed_a, signed_b) : dot_handler<DotProduct2Low>(signed_a, signed_b);
  }
  emit_ternary(decoder, handler, Type::kU32, Type::kU32, Type::kU32, Type::kU32);
}

constexpr Opcode kOpcodes[] = {
    {"add", decode_add},          {"sub", decode_add},          {"mul", decode_multiply},
    {"mad", decode_multiply_add}, {"fma", decode_multiply_add}, {"mul24", decode_multiply24},
    {"mad24", decode_multiply24}, {"div", decode_divide},       {"rem", decode_remainder},
    {"min", decode_min_max},      {"max", decode_min_max},      {"neg", decode_negate},
    {"abs", decode_negate},       {"sad", decode_sad},          {"dp4a", decode_dot_product},
    {"dp2a", decode_dot_product},
};

}  // namespace

std::span<const Opcode> integer_opcodes() {
  return kOpcodes;
}

void add_integer_meanings(native::Meanings& meanings) {
  using native::Action;
  using u32 = std::uint32_t;
  using s32 = std::int32_t;
  using u64 = std::uint64_t;
  using s64 = std::int64_t;
  const native::VectorOpcode add32{1, 1, 0, 0xfe}, add64{1, 1, 0, 0xd4}, sub32{1, 1, 0, 0xfa}, sub64{1, 1, 0, 0xfb};
  const native::VectorOpcode low32{2, 1, 0, 0x40}, wide_signed{2, 1, 0, 0x28}, wide_unsigned{1, 1, 0, 0xf4};
  for (const Handler add : {binary<Add, u32, u32>, binary<Add, s32, s32>})
    meanings[add] = {Action::kAdd, 4, true, add32};
  for (const Handler add : {binary<Add, u64, u64>, binary<Add, s64, s64>})
    meanings[add] = {Action::kAdd, 8, true, add64};
  for (const Handler subtract : {binary<Subtract, u32, u32>, binary<Subtract, s32, s32>}) {
    meanings[subtract] = {Action::kSubtract, 4, false, sub32};
  }
  for (const Handler subtract : {binary<Subtract, u64, u64>, binary<Subtract, s64, s64>}) {
    meanings[subtract] = {Action::kSubtract, 8, false, sub64};
  }
  for (const Handler multiply : {binary<MultiplyLow, u32, u32>, binary<MultiplyLow, s32, s32>}) {
    meanings[multiply] = {Action::kBinary, 4, true, low32};
  }
  for (const Handler multiply :
       {ternary<MultiplyAdd<MultiplyLow>, u32, u32>, ternary<MultiplyAdd<MultiplyLow>, s32, s32>}) {
    meanings[multiply] = {Action::kMultiplyAdd, 4, true, low32};
  }
  meanings[binary<MultiplyWide<s64>, s64, s32>] = {Action::kMultiplyWide, 8, true, wide_signed, 1};
  meanings[binary<MultiplyWide<u64>, u64, u32>] = {Action::kMultiplyWide, 8, true, wide_unsigned, 0};
  meanings[binary<Minimum, s32, s32>] = {Action::kBinary, 4, true, {2, 1, 0, 0x39}};
  meanings[binary<Minimum, u32, u32>] = {Action::kBinary, 4, true, {2, 1, 0, 0x3b}};
  meanings[binary<Maximum, s32, s32>] = {Action::kBinary, 4, true, {2, 1, 0, 0x3d}};
  meanings[binary<Maximum, u32, u32>] = {Action::kBinary, 4, true, {2, 1, 0, 0x3f}};
  meanings[unary<Absolute, s32, s32>] = {Action::kUnary, 4, false, {2, 1, 0, 0x1e}};
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
