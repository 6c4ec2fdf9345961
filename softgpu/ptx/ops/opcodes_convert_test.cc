// cvt and cvta: every pair of types and every rounding mode against references in exact arithmetic.
#include <algorithm>

#include "softgpu/ptx/opcode_test.h"

namespace softgpu::ptx {
namespace {

using namespace testing;  // the short names of types

template <class T>
std::string name_of() {
  if constexpr (std::is_same_v<T, float>) return "f32";
  if constexpr (std::is_same_v<T, double>) return "f64";
  if constexpr (std::is_same_v<T, f16>) return "f16";
  if constexpr (std::is_same_v<T, bf16>) return "bf16";
  return std::string(std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T));
}
// 80 bits hold every integer and every float exactly.
template <class T>
long double exact(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return value.value();
  }
}
template <class T>
T clamped(long double value) {
  if (value != value) return 0;
  if (value >= static_cast<long double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (value <= static_cast<long double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

// NaN, as the manual says: zero; to 64 bits, or from f64, the highest bit alone.
template <class To, class From>
To from_float(long double value) {
  if (value == value) return clamped<To>(value);
  const bool is_wide = std::is_same_v<From, double> || sizeof(To) == 8;
  return is_wide ? static_cast<To>(u64{1} << (8 * sizeof(To) - 1)) : To{0};
}

enum class Mode { kNearest, kZero, kDown, kUp };
long double integral(long double value, Mode mode) {
  switch (mode) {
    case Mode::kNearest: return std::nearbyint(value);
    case Mode::kZero: return std::trunc(value);
    case Mode::kDown: return std::floor(value);
    default: return std::ceil(value);
  }
}
constexpr std::pair<const char*, Mode> kIntegral[] = {
    {".rni", Mode::kNearest}, {".rzi", Mode::kZero}, {".rmi", Mode::kDown}, {".rpi", Mode::kUp}};
constexpr std::pair<const char*, Mode> kRounding[] = {
    {".rn", Mode::kNearest}, {".rz", Mode::kZero}, {".rm", Mode::kDown}, {".rp", Mode::kUp}};

// A value of a format with `fraction` bits, smallest exponent and largest finite value, in any mode.
struct Format {
  int fraction, smallest;
  long double largest;
};
constexpr Format kSingle{23, -126, 0x1.fffffep127L}, kHalf{10, -14, 65504.0L}, kBrain{7, -126, 0x1.fep127L};
constexpr Format kDouble{52, -1022, 0x1.fffffffffffffp1023L};

long double represented(long double value, const Format& format, Mode mode) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.smallest);
  const long double units = std::ldexp(value, format.fraction - exponent);
  const long double out = std::copysign(std::ldexp(integral(units, mode), exponent - format.fraction), value);
  if (std::fabs(out) <= format.largest) return out;
  const bool stays = mode == Mode::kZero || mode == (value > 0 ? Mode::kDown : Mode::kUp);
  return std::copysign(stays ? format.largest : static_cast<long double>(HUGE_VAL), value);
}
template <class T>
const Format& format_of() {
  if constexpr (std::is_same_v<T, float>) return kSingle;
  if constexpr (std::is_same_v<T, double>) return kDouble;
  if constexpr (std::is_same_v<T, f16>) return kHalf;
  return kBrain;
}
template <class T>
T stored(long double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    return T::from(static_cast<double>(value));
  }
}
template <class T>
T converted(long double value, Mode mode) {
  return stored<T>(represented(value, format_of<T>(), mode));
}

// ---- integers

// An 8-bit value is kept in a 32-bit register, extended by its type's sign.
template <class T>
using Held = std::conditional_t<sizeof(T) == 1, std::conditional_t<std::is_signed_v<T>, s32, u32>, T>;

template <class To, class From>
void expect_integer_pair() {
  const std::string types = "." + name_of<To>() + "." + name_of<From>();
  const auto low = [](Held<From> a) { return static_cast<From>(a); };
  expect_op<Held<To>(Held<From>)>("cvt" + types, [=](Held<From> a) { return Held<To>{static_cast<To>(low(a))}; });
  if constexpr (!std::is_same_v<To, From>) {
    expect_op<Held<To>(Held<From>)>("cvt.sat" + types,
                                    [=](Held<From> a) { return Held<To>{clamped<To>(exact(low(a)))}; });
  }
}
template <class To>
void expect_to_integer() {
  expect_integer_pair<To, s8>();
  expect_integer_pair<To, u8>();
  expect_integer_pair<To, s16>();
  expect_integer_pair<To, u16>();
  expect_integer_pair<To, s32>();
  expect_integer_pair<To, u32>();
  expect_integer_pair<To, s64>();
  expect_integer_pair<To, u64>();
}
TEST(ConvertOpcodes, IntegersToNarrowIntegers) {
  expect_to_integer<s8>();
  expect_to_integer<u8>();
  expect_to_integer<s16>();
  expect_to_integer<u16>();
}
TEST(ConvertOpcodes, IntegersToWideIntegers) {
  expect_to_integer<s32>();
  expect_to_integer<u32>();
  expect_to_integer<s64>();
  expect_to_integer<u64>();
}

template <class To, class From>
void expect_float_to_integer() {
  for (const auto& [suffix, mode] : kIntegral) {
    const Mode rounding = mode;
    expect_op<Held<To>(From)>("cvt" + std::string(suffix) + "." + name_of<To>() + "." + name_of<From>(),
                              [=](From a) { return Held<To>{from_float<To, From>(integral(exact(a), rounding))}; });
  }
}
template <class From>
void expect_float_to_integers() {
  expect_float_to_integer<s8, From>();
  expect_float_to_integer<u8, From>();
  expect_float_to_integer<s16, From>();
  expect_float_to_integer<u16, From>();
  expect_float_to_integer<s32, From>();
  expect_float_to_integer<u32, From>();
  expect_float_to_integer<s64, From>();
  expect_float_to_integer<u64, From>();
}
TEST(ConvertOpcodes, FloatsToIntegersSaturateAndNaNIsZero) {
  expect_float_to_integers<float>();
  expect_float_to_integers<double>();
  expect_float_to_integers<f16>();
  expect_float_to_integers<bf16>();
  expect_op<s32(float)>("cvt.rpi.ftz.s32.f32", [](float a) {
    return std::fabs(a) < std::numeric_limits<float>::min() ? 0 : clamped<s32>(std::ceil(exact(a)));
  });
}

template <class To, class From>
void expect_integer_to_float() {
  for (const auto& [suffix, mode] : kRounding) {
    const Mode rounding = mode;
    expect_op<To(Held<From>)>("cvt" + std::string(suffix) + "." + name_of<To>() + "." + name_of<From>(),
                              [=](Held<From> a) { return converted<To>(exact(static_cast<From>(a)), rounding); });
  }
}
template <class To>
void expect_integers_to_float() {
  expect_integer_to_float<To, s8>();
  expect_integer_to_float<To, u8>();
  expect_integer_to_float<To, s16>();
  expect_integer_to_float<To, u16>();
  expect_integer_to_float<To, s32>();
  expect_integer_to_float<To, u32>();
  expect_integer_to_float<To, s64>();
  expect_integer_to_float<To, u64>();
}
TEST(ConvertOpcodes, IntegersToFloatsInEveryRoundingMode) {
  expect_integers_to_float<float>();
  expect_integers_to_float<double>();
  expect_integers_to_float<f16>();
  expect_integers_to_float<bf16>();
}

// ---- between floats

template <class To, class From>
void expect_narrowing() {
  for (const auto& [suffix, mode] : kRounding) {
    const Mode rounding = mode;
    expect_op<To(From)>("cvt" + std::string(suffix) + "." + name_of<To>() + "." + name_of<From>(),
                        [=](From a) { return converted<To>(exact(a), rounding); });
  }
}
template <class To, class From>
void expect_widening() {
  expect_op<To(From)>("cvt." + name_of<To>() + "." + name_of<From>(), [](From a) { return stored<To>(exact(a)); });
}
template <class T>
void expect_integral_values() {
  for (const auto& [suffix, mode] : kIntegral) {
    const Mode rounding = mode;
    const std::string t = name_of<T>();
    expect_op<T(T)>("cvt" + std::string(suffix) + "." + t + "." + t,
                    [=](T a) { return stored<T>(std::copysign(integral(exact(a), rounding), exact(a))); });
  }
}
float flushed(float a) {
  return std::fabs(a) < std::numeric_limits<float>::min() ? std::copysign(0.0f, a) : a;
}
TEST(ConvertOpcodes, BetweenFloats) {
  expect_narrowing<float, double>();
  expect_narrowing<f16, float>();
  expect_narrowing<f16, double>();
  expect_narrowing<bf16, float>();
  expect_narrowing<bf16, double>();
  expect_widening<double, float>();
  expect_widening<float, f16>();
  expect_widening<double, f16>();
  expect_widening<float, bf16>();
  expect_widening<double, bf16>();
  expect_widening<float, float>();
  expect_integral_values<float>();
  expect_integral_values<double>();
  expect_integral_values<f16>();
}
TEST(ConvertOpcodes, FlushSaturateAndClip) {
  const auto limited = [](auto a) { return a > 0 ? std::min<decltype(a)>(a, 1) : decltype(a){0}; };
  expect_op<float(float)>("cvt.sat.f32.f32", limited);
  expect_op<double(double)>("cvt.sat.f64.f64", limited);
  expect_op<float(float)>("cvt.ftz.f32.f32", flushed);
  expect_op<float(double)>("cvt.rn.ftz.f32.f64", [](double a) { return flushed(static_cast<float>(a)); });
  expect_op<double(float)>("cvt.ftz.f64.f32", [](float a) { return double{flushed(a)}; });
  expect_op<f16(float)>("cvt.rn.sat.f16.f32", [&](float a) { return f16::from(limited(a)); });
  expect_op<f16(float)>("cvt.rn.relu.f16.f32", [](float a) { return f16::from(a > 0 || a != a ? a : 0); });
  expect_op<bf16(float)>("cvt.rn.relu.bf16.f32", [](float a) { return bf16::from(a > 0 || a != a ? a : 0); });
}

float clipped(float a) {
  return a > 0 || a != a ? a : 0.0f;
}
template <class Half>
void expect_pairs() {
  using P = Pair<Half>;
  const std::string t = "." + name_of<Half>() + "x2.f32";
  const auto expect = [&](const std::string& name, auto convert) {
    expect_op<P(float, float)>("cvt" + name + t, [=](float a, float b) { return P{convert(b), convert(a)}; });
  };
  expect(".rn", [](float a) { return converted<Half>(a, Mode::kNearest); });
  expect(".rz", [](float a) { return converted<Half>(a, Mode::kZero); });
  expect(".rn.relu", [](float a) { return converted<Half>(clipped(a), Mode::kNearest); });
  expect(".rz.relu", [](float a) { return converted<Half>(clipped(a), Mode::kZero); });
}
TEST(ConvertOpcodes, PairsOfHalves) {
  expect_pairs<f16>();
  expect_pairs<bf16>();
}

TEST(ConvertOpcodes, TensorFloat) {
  constexpr Format kTensor{10, -126, 0x1.ffcp127L};
  const auto expect = [&](const char* opcode, auto round) {
    expect_op<u32(float)>(
        opcode, [=](float a) { return a != a ? 0x7fffffffu : std::bit_cast<u32>(static_cast<float>(round(a))); });
  };
  // Ties away from zero: as if half a unit were added to the magnitude.
  const auto away = [=](float a) {
    const long double up = represented(a, kTensor, a > 0 ? Mode::kUp : Mode::kDown);
    const long double zero = represented(a, kTensor, Mode::kZero);
    if (!std::isfinite(up)) return std::fabs(a) >= 0x1.ffep127f ? up : zero;
    return std::fabs(up - a) <= std::fabs(a - zero) ? up : zero;
  };
  expect("cvt.rna.tf32.f32", away);
  expect("cvt.rn.tf32.f32", [=](float a) { return represented(a, kTensor, Mode::kNearest); });
  expect("cvt.rz.tf32.f32", [=](float a) { return represented(a, kTensor, Mode::kZero); });
  expect("cvt.rn.relu.tf32.f32", [=](float a) { return represented(clipped(a), kTensor, Mode::kNearest); });
}

// ---- 8-bit floats: the nearest of all 256 values, ties to the even code

double e4m3(u8 code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  const double sign = (code & 128) != 0 ? -1 : 1;
  if ((code & 127) == 127) return std::nan("");
  return sign * (exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10));
}
double e5m2(u8 code) {
  return f16{static_cast<u16>(code << 8)}.value();
}
template <double (*kValue)(u8)>
u8 nearest_code(double value) {
  if (value != value) return 127;
  const u8 sign = std::signbit(value) ? 128 : 0;
  const double magnitude = std::min(std::fabs(value), 1e6);  // far above the largest value of both formats
  u8 best = 0;
  for (int code = 1; code < 127; ++code) {
    const double known = kValue(static_cast<u8>(code));
    if (!std::isfinite(known)) break;
    const double distance = std::fabs(known - magnitude);
    const double before = std::fabs(kValue(best) - magnitude);
    if (distance < before || (distance == before && code % 2 == 0)) best = static_cast<u8>(code);
  }
  return best | sign;
}
template <double (*kValue)(u8)>
void expect_float8(const std::string& type) {
  const auto pair = [](double high, double low) {
    return static_cast<u16>(nearest_code<kValue>(high) << 8 | nearest_code<kValue>(low));
  };
  expect_op<u16(float, float)>("cvt.rn.satfinite." + type + ".f32", pair);
  expect_op<u16(float, float)>("cvt.rn.satfinite.relu." + type + ".f32",
                               [=](float a, float b) { return pair(clipped(a), clipped(b)); });
  expect_op<u16(f16x2)>("cvt.rn.satfinite." + type + ".f16x2",
                        [=](f16x2 a) { return pair(a.high.value(), a.low.value()); });
  expect_op<f16x2(u16)>("cvt.rn.f16x2." + type, [](u16 a) {
    return f16x2{f16::from(kValue(static_cast<u8>(a))), f16::from(kValue(static_cast<u8>(a >> 8)))};
  });
}
TEST(ConvertOpcodes, EightBitFloats) {
  expect_float8<e4m3>("e4m3x2");
  expect_float8<e5m2>("e5m2x2");
}

template <class From>
void expect_integer_packing(const std::string& type, int bits, s64 least, s64 most) {
  const u32 field = (1u << bits) - 1;
  const auto limited = [=](From a) { return static_cast<u32>(std::clamp(s64{a}, least, most)) & field; };
  const std::string opcode = "cvt.pack.sat." + type + "." + name_of<From>();
  if (bits == 16) {
    expect_op<u32(From, From)>(opcode, [=](From a, From b) { return limited(a) << 16 | limited(b); });
  } else {
    expect_op<u32(From, From, u32)>(
        opcode + ".b32", [=](From a, From b, u32 c) { return c << 2 * bits | limited(a) << bits | limited(b); });
  }
}
TEST(ConvertOpcodes, PackedIntegers) {
  expect_integer_packing<s32>("u16", 16, 0, 65535);
  expect_integer_packing<s32>("s16", 16, -32768, 32767);
  expect_integer_packing<u32>("u16", 16, 0, 65535);
  expect_integer_packing<s32>("u8", 8, 0, 255);
  expect_integer_packing<s32>("s8", 8, -128, 127);
  expect_integer_packing<s32>("u4", 4, 0, 15);
  expect_integer_packing<s32>("s4", 4, -8, 7);
  expect_integer_packing<s32>("u2", 2, 0, 3);
  expect_integer_packing<s32>("s2", 2, -2, 1);
}

}  // namespace
}  // namespace softgpu::ptx
