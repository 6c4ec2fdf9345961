// One line per opcode: expect_op<s32(s32, s32)>("add.s32", [](s32 a, s32 b) { return ...; }) runs the instruction on
// every pair of the types' edge values (limits, NaN, infinities, subnormals, shift counts past the width) and compares
// it with the reference, bit by bit but for NaNs, which are all alike. Halves and other formats are values of these
// types, so a reference is written in plain arithmetic.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "softgpu/ptx/coverage.h"
#include "softgpu/ptx/ptx_evaluator.h"

namespace softgpu::ptx::testing {

using s8 = std::int8_t;
using u8 = std::uint8_t;
using s16 = std::int16_t;
using u16 = std::uint16_t;
using s32 = std::int32_t;
using u32 = std::uint32_t;
using s64 = std::int64_t;
using u64 = std::uint64_t;

// ---- small floating-point formats, in plain arithmetic

// Rounds to the nearest value with `fraction` bits behind the leading one, ties to even; below 2^smallest the bits
// behind the leading one get fewer. 1 + 2^-11 becomes 1 as an f16 (fraction 10, smallest -14).
inline double rounded(double value, int fraction, int smallest) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), smallest);
  return std::ldexp(std::nearbyint(std::ldexp(value, fraction - exponent)), exponent - fraction);
}

template <int kFraction, int kExponentBits>
struct SmallFloat {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  u16 bits = 0;

  static SmallFloat from(double value) {
    const u16 sign = std::signbit(value) ? 0x8000 : 0;
    constexpr u16 kInfinity = static_cast<u16>(((1 << kExponentBits) - 1) << kFraction);
    if (value != value) return {0x7fff};
    const double magnitude = rounded(std::fabs(value), kFraction, 1 - kBias);
    if (magnitude >= std::ldexp(1.0, kBias + 1)) return {static_cast<u16>(sign | kInfinity)};
    if (magnitude == 0) return {sign};
    const int exponent = std::max(std::ilogb(magnitude), 1 - kBias);
    const auto units = static_cast<int>(std::ldexp(magnitude, kFraction - exponent));
    return {static_cast<u16>(sign | (((exponent + kBias - 1) << kFraction) + units))};
  }
  double value() const {
    const int exponent = bits >> kFraction & ((1 << kExponentBits) - 1), units = bits & ((1 << kFraction) - 1);
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == (1 << kExponentBits) - 1) {
      return units != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
    }
    if (exponent == 0) return sign * std::ldexp(units, 1 - kBias - kFraction);
    return sign * std::ldexp((1 << kFraction) + units, exponent - kBias - kFraction);
  }
};
using f16 = SmallFloat<10, 5>;
using bf16 = SmallFloat<7, 8>;

// Two halves in a 32-bit register, `low` in the lower bits.
template <class Half>
struct Pair {
  Half low, high;
};
using f16x2 = Pair<f16>;
using bf16x2 = Pair<bf16>;

// ---- edge values

template <class T>
std::vector<T> edges() {
  if constexpr (std::is_same_v<T, bool>) {
    return {false, true};
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    constexpr int kBits = sizeof(T) * 8;
    constexpr U kTop = U{1} << (kBits - 1);
    const u64 pattern = 0x123456789abcdef0;
    return {0,
            1,
            2,
            7,
            static_cast<T>(kBits - 1),
            static_cast<T>(kBits),
            static_cast<T>(kBits + 1),
            static_cast<T>(kTop - 1),
            static_cast<T>(kTop),
            static_cast<T>(kTop + 1),
            static_cast<T>(~U{0}),
            static_cast<T>(~U{0} - 1),
            static_cast<T>(pattern),
            static_cast<T>(~pattern >> 3),
            static_cast<T>(pattern >> 17)};
  } else if constexpr (std::is_floating_point_v<T>) {
    using L = std::numeric_limits<T>;
    return {T(0),
            -T(0),
            T(1),
            T(-1),
            T(0.5),
            T(-2.5),
            T(3.75),
            T(1) / 3,
            T(100.5),
            T(-7.25),
            T(1e10),
            T(-1e10),
            L::max(),
            L::lowest(),
            L::min(),
            -L::min(),
            L::denorm_min(),
            L::min() / 2,
            L::infinity(),
            -L::infinity(),
            L::quiet_NaN(),
            1 + L::epsilon(),
            T(2147483648.0),
            T(65504)};
  } else if constexpr (sizeof(T) == 2) {  // a half
    std::vector<T> out;
    for (const double value : {0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.75, 1.0 / 3, 100.5, 65504.0, -65504.0, 6.1e-5,
                               5.96e-8, -3e-6, 1000.0, 2048.0, 3e38}) {
      out.push_back(T::from(value));
    }
    for (const double value : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      out.push_back(T::from(value));
      out.push_back(T::from(-value));
    }
    return out;
  } else {  // a pair
    std::vector<T> out;
    const auto halves = edges<decltype(T{}.low)>();
    for (std::size_t i = 0; i < halves.size(); ++i) out.push_back({halves[i], halves[(i * 7 + 3) % halves.size()]});
    return out;
  }
}

// ---- comparison

template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
  } else if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else if constexpr (sizeof(T) == 2) {
    return a.bits == b.bits || (a.value() != a.value() && b.value() != b.value());
  } else {
    return same(a.low, b.low) && same(a.high, b.high);
  }
}

template <class T>
std::string shown(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  char text[64];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
  std::string out = text;
  if constexpr (std::is_floating_point_v<T>) out += " (" + std::to_string(value) + ")";
  return out;
}

// What a register holds of T: a predicate is kept as a word.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, u32, T>;

template <class Signature>
struct OpcodeTest;

template <class R, class... A>
struct OpcodeTest<R(A...)> {
  static constexpr std::size_t kThreads = 640;

  // `body` computes %out, of bool a word that is 1 or 0. `allowed`: the relative error, of approximate functions.
  template <class Reference>
  static void run(const std::string& opcode, const Reference& reference, const std::string& body, double allowed) {
    covers(opcode);
    EXPECT_NE(body.find(opcode), std::string::npos) << body;
    std::tuple<std::vector<Stored<A>>...> inputs;
    fill(inputs, std::index_sequence_for<A...>{});
    const auto results = std::apply(
        [&](const auto&... values) { return evaluate_threads<Stored<R>>(kThreads, body, values...); }, inputs);
    int shown_failures = 0;
    for (std::size_t i = 0; i < kThreads && shown_failures < 3; ++i) {
      const R expected =
          std::apply([&](const auto&... values) { return reference(static_cast<A>(values[i])...); }, inputs);
      const R actual = static_cast<R>(results[i]);
      if (same(actual, expected) || is_near(actual, expected, allowed)) continue;
      ++shown_failures;
      std::string of;
      std::apply([&](const auto&... values) { ((of += " " + shown(values[i])), ...); }, inputs);
      ADD_FAILURE() << body << " of" << of << ": " << shown(actual) << " instead of " << shown(expected);
    }
  }

 private:
  static bool is_near(R actual, R expected, double allowed) {
    if constexpr (std::is_floating_point_v<R>) {
      if (allowed == 0 || !std::isfinite(actual) || !std::isfinite(expected)) return false;
      const double error = std::fabs(static_cast<double>(actual) - static_cast<double>(expected));
      return error <= allowed * std::max(std::fabs(static_cast<double>(expected)), 1e-30);
    }
    return false;
  }

  // Every combination of the first two inputs' edges; further inputs run through theirs at other paces.
  template <std::size_t... I>
  static void fill(std::tuple<std::vector<Stored<A>>...>& inputs, std::index_sequence<I...>) {
    std::size_t pace[] = {1, 1, 7, 11, 13};
    if constexpr (sizeof...(A) > 1) pace[1] = edges<std::tuple_element_t<0, std::tuple<A...>>>().size();
    (
        [&] {
          const auto values = edges<A>();
          for (std::size_t thread = 0; thread < kThreads; ++thread) {
            const std::size_t at = I == 0 ? thread : I == 1 ? thread / pace[1] : thread * pace[I] / 3 + thread;
            std::get<I>(inputs).push_back(values[at % values.size()]);
          }
        }(),
        ...);
  }
};

// The plain form: `opcode %out, %in0, %in1;`, with a predicate as result where R is bool.
template <class Signature>
struct PlainBody;
template <class R, class... A>
struct PlainBody<R(A...)> {
  static std::string of(const std::string& opcode) {
    std::string inputs, predicates;
    std::size_t index = 0;
    (
        [&] {
          const std::string n = std::to_string(index++);
          const bool is_predicate = std::is_same_v<A, bool>;
          if (is_predicate) predicates += "setp.ne.u32 %p" + n + ", %in" + n + ", 0;\n";
          inputs += (is_predicate ? ", %p" : ", %in") + n;
        }(),
        ...);
    if (std::is_same_v<R, bool>) return predicates + opcode + " %p7" + inputs + ";\nselp.b32 %out, 1, 0, %p7;";
    return predicates + opcode + " %out" + inputs + ";";
  }
};

template <class Signature, class Reference>
void expect_op(const std::string& opcode, const Reference& reference) {
  OpcodeTest<Signature>::run(opcode, reference, PlainBody<Signature>::of(opcode), 0);
}
template <class Signature, class Reference>
void expect_op(const std::string& opcode, const Reference& reference, const std::string& body) {
  OpcodeTest<Signature>::run(opcode, reference, body, 0);
}
template <class Signature, class Reference>
void expect_near(const std::string& opcode, const Reference& reference, double allowed) {
  OpcodeTest<Signature>::run(opcode, reference, PlainBody<Signature>::of(opcode), allowed);
}

}  // namespace softgpu::ptx::testing
