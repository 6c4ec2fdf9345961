// cvt between all integer and floating-point types, with rounding, saturation and flushing.
#include <cfenv>
#include <cfloat>
#include <cmath>
#include <limits>
#include <type_traits>

#include "softgpu/ptx/ops/half.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

template <class T>
constexpr bool kIsFloat =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, _Float16> || std::is_same_v<T, BFloat16>;

template <class T>
auto widen(T value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_float(value);
  } else if constexpr (std::is_same_v<T, _Float16>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

template <class To, class From>
To narrow(From value) {
  if constexpr (std::is_same_v<To, BFloat16>) {
    if constexpr (std::is_same_v<From, double>) return to_bfloat16(round_to_odd(value));
    if constexpr (std::is_integral_v<From>) return to_bfloat16(round_to_odd(static_cast<long double>(value)));
    return to_bfloat16(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

// To an integral value: nearest even, towards zero, down, up.
enum Integral { kNearest, kZero, kDown, kUp, kNone };

template <int kMode, class T>
T to_integral(T value) {
  if constexpr (std::is_same_v<T, float>) {
    if constexpr (kMode == kNearest) return __builtin_rintf(value);
    if constexpr (kMode == kZero) return __builtin_truncf(value);
    if constexpr (kMode == kDown) return __builtin_floorf(value);
    if constexpr (kMode == kUp) return __builtin_ceilf(value);
  } else {
    if constexpr (kMode == kNearest) return __builtin_rint(value);
    if constexpr (kMode == kZero) return __builtin_trunc(value);
    if constexpr (kMode == kDown) return __builtin_floor(value);
    if constexpr (kMode == kUp) return __builtin_ceil(value);
  }
  return value;
}

// NaN as an integer: zero; to 64 bits, or from f64, the highest bit alone.
template <class To, class From>
constexpr To kOfNan = std::is_same_v<From, double> || sizeof(To) == 8
                          ? static_cast<To>(std::make_unsigned_t<To>(1) << (8 * sizeof(To) - 1))
                          : To{0};

// Out of range saturates.
template <class To, int kMode>
struct FloatToInteger {
  template <class From>
  static To apply(From stored) {
    const auto value = to_integral<kMode>(widen(stored));
    using Float = std::remove_const_t<decltype(value)>;
    constexpr auto kLow = static_cast<Float>(std::numeric_limits<To>::min());
    // The largest value rounds up to a power of two when To has more bits than Float.
    constexpr auto kHigh = static_cast<Float>(std::numeric_limits<To>::max());
    constexpr bool kExact = std::numeric_limits<To>::digits <= std::numeric_limits<Float>::digits;
    const bool above = kExact ? value > kHigh : value >= kHigh;
    const bool below = value < kLow;
    const bool is_inside = !above && !below && value == value;
    const To inside = static_cast<To>(is_inside ? value : Float{0});
    const To known = above ? std::numeric_limits<To>::max() : below ? std::numeric_limits<To>::min() : inside;
    if constexpr (kOfNan<To, From> == To{0}) {
      return known;
    } else {
      return value == value ? known : kOfNan<To, From>;
    }
  }
};

template <class To>
struct Cast {
  template <class From>
  static To apply(From value) {
    if constexpr (kIsFloat<To>) {
      return narrow<To>(widen(value));
    } else {
      return static_cast<To>(value);
    }
  }
};

template <class To>
struct SaturateInteger {
  template <class From>
  static To apply(From value) {
    using Wide = __int128;
    const Wide wide = value;
    if (wide > Wide{std::numeric_limits<To>::max()}) return std::numeric_limits<To>::max();
    if (wide < Wide{std::numeric_limits<To>::min()}) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  }
};

// Within one floating-point type: .rni and its like; .sat clamps to [0, 1] and turns NaN into 0.
template <int kMode>
struct RoundToIntegral {
  template <class T>
  static T apply(T value) {
    return narrow<T>(to_integral<kMode>(widen(value)));
  }
};
struct Saturate {
  template <class T>
  static T apply(T stored) {
    const auto value = widen(stored);
    using Float = std::remove_const_t<decltype(value)>;
    return narrow<T>(value > Float{0} ? (value < Float{1} ? value : Float{1}) : Float{0});
  }
};
struct Relu {  // NaN stays
  template <class T>
  static T apply(T stored) {
    const auto value = widen(stored);
    using Float = std::remove_const_t<decltype(value)>;
    return narrow<T>(value > Float{0} || value != value ? value : Float{0});
  }
};
struct Flush {
  static float apply(float value) {
    return __builtin_fabsf(value) < FLT_MIN ? __builtin_copysignf(0.0f, value) : value;
  }
};

// A conversion to f32 or f64 in a directed mode, by the CPU's rounding mode (1 zero, 2 down, 3 up).
template <class To, class From>
[[gnu::noinline]] const Instruction* convert_directed(Warp& warp, const Instruction* at) {
  constexpr int kHostModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const From* a = source<From>(warp, at->a);
  To values[kLanes];
  const int before = std::fegetround();
  std::fesetround(kHostModes[at->mode & 3]);
  for (int lane = 0; lane < kLanes; ++lane) {
    volatile From from = a[lane];
    volatile To to = static_cast<To>(from);
    values[lane] = to;
  }
  std::fesetround(before);
  blend(row<To>(warp, at->dst), values, warp.mask);
  return at + 1;
}

// To f16 or bf16 in a directed mode: the nearest value, moved by one when it lies on the wrong side. Halves are ordered
// like their bits, negative ones backwards.
template <class To, int kMode>
struct DirectedHalf {
  template <class From>
  static To apply(From stored) {
    const auto value = static_cast<long double>(widen(stored));
    const To nearest = narrow<To>(widen(stored));
    const auto back = static_cast<long double>(widen(nearest));
    const auto bits = std::bit_cast<std::uint16_t>(nearest);
    const bool is_negative = (bits & 0x8000) != 0;
    if (kMode == kZero ? std::fabs(back) > std::fabs(value) : kMode == kDown ? back > value : back < value) {
      const bool shrinks = kMode == kZero || (kMode == kDown) != is_negative;
      return std::bit_cast<To>(static_cast<std::uint16_t>(shrinks ? bits - 1 : bits + 1));
    }
    return nearest;
  }
};

// ---- choosing

template <class Pick>
Handler with_any_integer(Type type, const Pick& pick) {
  if (type == Type::kU8 || type == Type::kB8) return pick(Tag<std::uint8_t>{});
  if (type == Type::kS8) return pick(Tag<std::int8_t>{});
  return with_integer(type, pick);
}
template <class Pick>
Handler with_any_float(Type type, const Pick& pick) {
  if (type == Type::kF16) return pick(Tag<_Float16>{});
  if (type == Type::kBf16) return pick(Tag<BFloat16>{});
  return with_float(type, pick);
}

template <class From, int kMode>
Handler from_float(Type to) {
  return with_any_integer(to, [](auto tag) -> Handler {
    using To = typename decltype(tag)::type;
    return unary<FloatToInteger<To, kMode>, To, From>;
  });
}

Handler float_to_integer(Type to, Type from, int mode) {
  return with_any_float(from, [&](auto tag) -> Handler {
    using From = typename decltype(tag)::type;
    switch (mode) {
      case kNearest: return from_float<From, kNearest>(to);
      case kZero: return from_float<From, kZero>(to);
      case kDown: return from_float<From, kDown>(to);
      case kUp: return from_float<From, kUp>(to);
      default: return nullptr;
    }
  });
}

Handler integer_to_integer(Type to, Type from, bool saturates) {
  return with_any_integer(to, [&](auto to_tag) {
    return with_any_integer(from, [&](auto from_tag) -> Handler {
      using To = typename decltype(to_tag)::type;
      using From = typename decltype(from_tag)::type;
      return saturates ? unary<SaturateInteger<To>, To, From> : unary<Cast<To>, To, From>;
    });
  });
}

template <class From>
Handler directed_half_handler(Type to, int rounding) {
  const auto pick = [&]<class To>(Tag<To>) -> Handler {
    return rounding == kZero   ? unary<DirectedHalf<To, kZero>, To, From>
           : rounding == kDown ? unary<DirectedHalf<To, kDown>, To, From>
                               : unary<DirectedHalf<To, kUp>, To, From>;
  };
  return to == Type::kF16 ? pick(Tag<_Float16>{}) : pick(Tag<BFloat16>{});
}

Handler integer_to_float(Type to, Type from, int rounding) {
  return with_any_integer(from, [&](auto from_tag) -> Handler {
    using From = typename decltype(from_tag)::type;
    if (rounding != 0 && size_of(to) == 2) return directed_half_handler<From>(to, rounding);
    if (rounding != 0) {
      return with_float(to,
                        [](auto to_tag) -> Handler { return convert_directed<typename decltype(to_tag)::type, From>; });
    }
    return with_any_float(to, [](auto to_tag) -> Handler {
      using To = typename decltype(to_tag)::type;
      return unary<Cast<To>, To, From>;
    });
  });
}

Handler integral_handler(Type type, int mode) {
  return with_any_float(type, [&](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    switch (mode) {
      case kNearest: return unary<RoundToIntegral<kNearest>, T, T>;
      case kZero: return unary<RoundToIntegral<kZero>, T, T>;
      case kDown: return unary<RoundToIntegral<kDown>, T, T>;
      default: return unary<RoundToIntegral<kUp>, T, T>;
    }
  });
}

Handler float_to_float(Type to, Type from, int rounding) {
  if (rounding == 0 || size_of(to) > size_of(from)) {
    return with_any_float(to, [&](auto to_tag) {
      return with_any_float(from, [](auto from_tag) -> Handler {
        using To = typename decltype(to_tag)::type;
        return unary<Cast<To>, To, typename decltype(from_tag)::type>;
      });
    });
  }
  if (to == Type::kF32 && from == Type::kF64) return convert_directed<float, double>;
  if (size_of(to) != 2) return nullptr;
  return with_float(from, [&](auto tag) { return directed_half_handler<typename decltype(tag)::type>(to, rounding); });
}

template <class Op>
Handler same_type_handler(Type type) {
  return with_any_float(type, [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return unary<Op, T, T>;
  });
}

// ---- decoding

struct Modifiers {
  int integral = kNone;
  int rounding = 0;
  bool flushes = false;
  bool saturates = false;
  bool relu = false;
};

Modifiers take_modifiers(Decoder& decoder) {
  Modifiers out;
  constexpr std::string_view kIntegral[] = {"rni", "rzi", "rmi", "rpi"};
  constexpr std::string_view kRounding[] = {"rn", "rz", "rm", "rp"};
  for (int i = 0; i < 4; ++i) {
    if (decoder.text.take(kIntegral[i])) out.integral = i;
    if (decoder.text.take(kRounding[i])) out.rounding = i;
  }
  out.flushes = decoder.text.take("ftz");
  out.saturates = decoder.text.take("sat");
  out.relu = decoder.text.take("relu");
  return out;
}

void decode_convert(Decoder& decoder) {
  if (decode_packed_conversion(decoder)) return;
  const Type to = decoder.text.take_type();
  const Type from = decoder.text.take_type();
  const Modifiers modifiers = take_modifiers(decoder);
  if (!decoder.text.expect_operands(2, 2)) return;
  auto a = decoder.rows.read(decoder.text.operands()[1], from);
  const auto dst = decoder.rows.write(decoder.text.operands()[0], to);
  if (modifiers.flushes && from == Type::kF32) {
    const auto flushed = decoder.frame.scratch();
    Instruction& flush = decoder.writer.emit(unary<Flush, float, float>);
    flush.dst = flushed;
    flush.a = a;
    a = flushed;
  }
  Handler handler = nullptr;
  if (is_float(to) && is_float(from)) {
    handler = modifiers.integral != kNone && to == from ? integral_handler(to, modifiers.integral)
                                                        : float_to_float(to, from, modifiers.rounding);
  } else if (is_float(to)) {
    handler = integer_to_float(to, from, modifiers.rounding);
  } else if (is_float(from)) {
    handler = float_to_integer(to, from, modifiers.integral);
  } else {
    handler = integer_to_integer(to, from, modifiers.saturates);
  }
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = a;
  instruction.mode = static_cast<std::uint16_t>(modifiers.rounding);
  if (modifiers.flushes && to == Type::kF32 && from == Type::kF64)
    emit_in_place(decoder, unary<Flush, float, float>, dst);
  if (modifiers.saturates && is_float(to)) emit_in_place(decoder, same_type_handler<Saturate>(to), dst);
  if (modifiers.relu && is_float(to)) emit_in_place(decoder, same_type_handler<Relu>(to), dst);
}

Handler resize_handler(std::size_t to, std::size_t from, bool sign) {
  const auto type = [&](std::size_t bytes) {
    switch (bytes) {
      case 1: return sign ? Type::kS8 : Type::kU8;
      case 2: return sign ? Type::kS16 : Type::kU16;
      case 4: return sign ? Type::kS32 : Type::kU32;
      default: return sign ? Type::kS64 : Type::kU64;
    }
  };
  return integer_to_integer(type(to), type(from), false);
}

constexpr Opcode kOpcodes[] = {{"cvt", decode_convert}};

}  // namespace

std::span<const Opcode> convert_opcodes() {
  return kOpcodes;
}

void add_convert_helpers(InstructionSet& set) {
  set.resize = resize_handler;
}

void add_convert_meanings(native::Meanings& meanings) {
  using native::Action;
  meanings[integer_to_integer(Type::kS64, Type::kS32, false)] = {Action::kWiden, 8, false, {}, 1};
  meanings[integer_to_integer(Type::kU64, Type::kU32, false)] = {Action::kWiden, 8, false, {}, 0};
  for (const Type to : {Type::kU32, Type::kS32}) {
    for (const Type from : {Type::kU64, Type::kS64})
      meanings[integer_to_integer(to, from, false)] = {Action::kNarrow, 4};
  }
  meanings[integer_to_float(Type::kF32, Type::kS32, 0)] = {Action::kUnary, 4, false, {1, 0, 0, 0x5b}};
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
