// Floating-point instructions against references in C++, with NaN, infinities, subnormals and ties.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "softgpu/ptx/ptx_evaluator.h"

namespace softgpu::ptx {
namespace {

using testing::evaluate;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();
constexpr float kLargest = std::numeric_limits<float>::max();

const std::vector<float> kLeft{0.0f,   -0.0f,    1.0f, -1.5f,  kNan, kInfinity, -kInfinity, kTiny,
                               1e-39f, kLargest, 3.1f, -7.25f, 0.1f, 1e20f,     2.5f,       -3.5f};
const std::vector<float> kRight{-0.0f,  0.0f,     3.0f,  kNan, 2.0f, -kInfinity, kInfinity, 2.0f,
                                1e-39f, kLargest, -0.3f, 7.0f, 0.2f, 1e25f,      -1.0f,     0.5f};

void expect_same(float got, float wanted, const std::string& what) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(got)) << what << " gave " << got;
  } else {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(wanted))
        << what << ": " << got << ", not " << wanted;
  }
}

void expect_f32(const std::string& body, const std::function<float(float, float)>& reference) {
  const auto results = evaluate<float>(body, kLeft, kRight);
  for (std::size_t i = 0; i < kLeft.size(); ++i) {
    expect_same(results[i], reference(kLeft[i], kRight[i]),
                body + " of " + std::to_string(kLeft[i]) + " and " + std::to_string(kRight[i]));
  }
}

void expect_f64(const std::string& body, const std::function<double(double, double)>& reference) {
  const std::vector<double> left(kLeft.begin(), kLeft.end()), right(kRight.begin(), kRight.end());
  const auto results = evaluate<double>(body, left, right);
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double wanted = reference(left[i], right[i]);
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(results[i])) << body;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(results[i]), std::bit_cast<std::uint64_t>(wanted))
          << body << " of " << left[i];
    }
  }
}

TEST(Float, ArithmeticIsIeee) {
  expect_f32("add.f32 %out, %in0, %in1;", [](float a, float b) { return a + b; });
  expect_f32("sub.rn.f32 %out, %in0, %in1;", [](float a, float b) { return a - b; });
  expect_f32("mul.f32 %out, %in0, %in1;", [](float a, float b) { return a * b; });
  expect_f32("div.rn.f32 %out, %in0, %in1;", [](float a, float b) { return a / b; });
  expect_f32("fma.rn.f32 %out, %in0, %in1, %in0;", [](float a, float b) { return std::fma(a, b, a); });
  expect_f32("sqrt.rn.f32 %out, %in0;", [](float a, float) { return std::sqrt(a); });
  expect_f32("rcp.rn.f32 %out, %in0;", [](float a, float) { return 1.0f / a; });
  expect_f32("neg.f32 %out, %in0;", [](float a, float) { return -a; });
  expect_f32("abs.f32 %out, %in0;", [](float a, float) { return std::fabs(a); });
  expect_f32("copysign.f32 %out, %in0, %in1;", [](float a, float b) { return std::copysign(b, a); });
  expect_f64("add.f64 %out, %in0, %in1;", [](double a, double b) { return a + b; });
  expect_f64("fma.rn.f64 %out, %in0, %in1, %in1;", [](double a, double b) { return std::fma(a, b, b); });
  expect_f64("div.rn.f64 %out, %in0, %in1;", [](double a, double b) { return a / b; });
  expect_f64("sqrt.rn.f64 %out, %in0;", [](double a, double) { return std::sqrt(a); });
}

TEST(Float, ANumberBeatsNanInMinimumAndMaximumAndZerosAreOrdered) {
  const auto minimum = [](float a, float b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  };
  const auto maximum = [](float a, float b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  };
  expect_f32("min.f32 %out, %in0, %in1;", minimum);
  expect_f32("max.f32 %out, %in0, %in1;", maximum);
  expect_f32("max.NaN.f32 %out, %in0, %in1;",
             [&](float a, float b) { return std::isnan(a) || std::isnan(b) ? kNan : maximum(a, b); });
}

float flush(float value) {
  return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
}

TEST(Float, FlushAndSaturation) {
  expect_f32("add.ftz.f32 %out, %in0, %in1;", [](float a, float b) { return flush(flush(a) + flush(b)); });
  expect_f32("mul.ftz.f32 %out, %in0, %in1;", [](float a, float b) { return flush(flush(a) * flush(b)); });
  expect_f32("add.sat.f32 %out, %in0, %in1;", [](float a, float b) {
    const float sum = a + b;
    return std::isnan(sum) ? 0.0f : std::fmin(std::fmax(sum, 0.0f), 1.0f) + 0.0f;
  });
  expect_f32("cvt.sat.f32.f32 %out, %in0;", [](float a, float) { return a > 0 ? std::fmin(a, 1.0f) : 0.0f; });
  expect_f32("setp.gt.ftz.f32 %p0, %in0, 0f00000000; selp.f32 %out, 0f3F800000, 0f00000000, %p0;",
             [](float a, float) { return flush(a) > 0 ? 1.0f : 0.0f; });
}

TEST(Float, FlushingSelectsByTheSignOfAZero) {
  const std::vector<float> signs{kTiny, -kTiny, 0.0f, -0.0f, 1.0f, -1.0f, -std::numeric_limits<float>::min(), kNan};
  const auto flushed = evaluate<std::uint32_t>("slct.ftz.u32.f32 %out, 1, 2, %in0;", signs);
  const auto kept = evaluate<std::uint32_t>("slct.u32.f32 %out, 1, 2, %in0;", signs);
  const std::vector<std::uint32_t> wanted{1, 1, 1, 1, 1, 2, 2, 2};
  for (std::size_t i = 0; i < signs.size(); ++i) {
    EXPECT_EQ(flushed[i], wanted[i]) << signs[i];
    EXPECT_EQ(kept[i], i == 1 ? 2 : wanted[i]) << signs[i];
  }
}

// Sums, products, quotients, and a sum behind an instruction that sets the rounding mode itself; as bits.
std::vector<std::uint32_t> bits_of_results() {
  std::vector<std::uint32_t> bits;
  for (const char* body : {"add.f32 %out, %in0, %in1;", "mul.f32 %out, %in0, %in1;", "div.rn.f32 %out, %in0, %in1;",
                           "div.rz.f32 %f0, %in0, %in1;\nadd.f32 %out, %in0, %in1;",
                           "cvt.rz.f16.f32 %h0, %in0;\ncvt.f32.f16 %out, %h0;"}) {
    for (const float result : evaluate<float>(body, kLeft, kRight)) {
      bits.push_back(std::bit_cast<std::uint32_t>(result));
    }
  }
  return bits;
}

TEST(Float, TheHostsStateIsNotTheKernels) {
  std::feclearexcept(FE_ALL_EXCEPT);
  const auto wanted = bits_of_results();
  EXPECT_EQ(std::fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW), 0);
  std::fenv_t before;
  std::fegetenv(&before);
  std::fesetround(FE_UPWARD);
  const auto upward = bits_of_results();
  const int mode = std::fegetround();
  std::fesetenv(&before);
  EXPECT_EQ(upward, wanted);
  EXPECT_EQ(mode, FE_UPWARD);
#if defined(__GLIBC__)
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  const auto trapping = bits_of_results();
  const int traps = fegetexcept();
  std::fesetenv(&before);
  EXPECT_EQ(trapping, wanted);
  EXPECT_EQ(traps, FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
#endif
#if defined(__SSE__)
  constexpr unsigned kFlushes = 0x8040;  // results and operands
  _mm_setcsr(_mm_getcsr() | kFlushes);
  const auto flushing = bits_of_results();
  const unsigned state = _mm_getcsr();
  std::fesetenv(&before);
  EXPECT_EQ(flushing, wanted);
  EXPECT_EQ(state & kFlushes, kFlushes);
#endif
}

TEST(Float, DirectedRounding) {
  struct Mode {
    const char* name;
    int host;
  };
  for (const Mode mode : {Mode{"rz", FE_TOWARDZERO}, Mode{"rm", FE_DOWNWARD}, Mode{"rp", FE_UPWARD}}) {
    const std::string suffix = std::string(".") + mode.name + ".f32 %out, %in0, %in1";
    const auto rounded = [&](auto compute) {
      return [=](float a, float b) {
        volatile float x = a, y = b;
        std::fesetround(mode.host);
        volatile float result = compute(x, y);
        std::fesetround(FE_TONEAREST);
        return static_cast<float>(result);
      };
    };
    expect_f32("add" + suffix + ";", rounded([](volatile float& a, volatile float& b) { return a + b; }));
    expect_f32("mul" + suffix + ";", rounded([](volatile float& a, volatile float& b) { return a * b; }));
    expect_f32("div" + suffix + ";", rounded([](volatile float& a, volatile float& b) { return a / b; }));
    expect_f32("fma" + suffix + ", %in1;",
               rounded([](volatile float& a, volatile float& b) { return std::fma(a, b, b); }));
  }
}

TEST(Float, ComparisonsWithNan) {
  const auto compares = [](const char* name, const std::function<bool(float, float)>& reference) {
    const std::string body =
        "setp." + std::string(name) + ".f32 %p0, %in0, %in1; selp.f32 %out, 0f3F800000, 0f00000000, %p0;";
    expect_f32(body, [&](float a, float b) { return reference(a, b) ? 1.0f : 0.0f; });
  };
  const auto unordered = [](float a, float b) { return std::isnan(a) || std::isnan(b); };
  compares("eq", [](float a, float b) { return a == b; });
  compares("ne", [&](float a, float b) { return !unordered(a, b) && a != b; });
  compares("neu", [](float a, float b) { return a != b; });
  compares("lt", [](float a, float b) { return a < b; });
  compares("geu", [&](float a, float b) { return unordered(a, b) || a >= b; });
  compares("leu", [&](float a, float b) { return unordered(a, b) || a <= b; });
  compares("num", [&](float a, float b) { return !unordered(a, b); });
  compares("nan", unordered);
}

TEST(Float, Classifies) {
  const auto tests = [](const char* name, const std::function<bool(float)>& reference) {
    const std::string body =
        "testp." + std::string(name) + ".f32 %p0, %in0; selp.f32 %out, 0f3F800000, 0f00000000, %p0;";
    expect_f32(body, [&](float a, float) { return reference(a) ? 1.0f : 0.0f; });
  };
  tests("finite", [](float a) { return std::isfinite(a); });
  tests("infinite", [](float a) { return std::isinf(a); });
  tests("notanumber", [](float a) { return std::isnan(a); });
  tests("normal", [](float a) { return std::isnormal(a) || a == 0; });
  tests("subnormal", [](float a) { return std::fpclassify(a) == FP_SUBNORMAL; });
}

void expect_close(const std::string& body, const std::function<double(double)>& reference) {
  const std::vector<float> inputs{0.0f, 1.0f, 0.5f, 2.0f, 10.25f, 0.001f, 30.0f, 3.0f};
  const auto results = evaluate<float>(body, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double wanted = reference(inputs[i]);
    if (!std::isfinite(wanted)) {
      EXPECT_EQ(results[i], static_cast<float>(wanted)) << body;
    } else {
      EXPECT_NEAR(results[i], wanted, 2e-6 * std::max(1.0, std::fabs(wanted))) << body << " of " << inputs[i];
    }
  }
}

TEST(Float, SpecialFunctionsAreWithinTheHardwaresBounds) {
  expect_close("ex2.approx.ftz.f32 %out, %in0;", [](double a) { return std::exp2(a); });
  expect_close("lg2.approx.f32 %out, %in0;", [](double a) { return std::log2(a); });
  expect_close("sin.approx.f32 %out, %in0;", [](double a) { return std::sin(a); });
  expect_close("cos.approx.f32 %out, %in0;", [](double a) { return std::cos(a); });
  expect_close("tanh.approx.f32 %out, %in0;", [](double a) { return std::tanh(a); });
  expect_close("rsqrt.approx.f32 %out, %in0;", [](double a) { return 1 / std::sqrt(a); });
  expect_close("rcp.approx.ftz.f32 %out, %in0;", [](double a) { return 1 / a; });
  expect_f32("ex2.approx.f32 %out, %in0;", [](float a, float) { return std::exp2(a); });
}

TEST(Convert, FloatToIntegerSaturatesAndNanDependsOnTheWidths) {
  const auto results = evaluate<std::int32_t>("cvt.rzi.s32.f32 %out, %in0;", kLeft);
  const auto wide = evaluate<std::uint64_t>("cvt.rni.u64.f32 %out, %in0;", kLeft);
  for (std::size_t i = 0; i < kLeft.size(); ++i) {
    const double a = kLeft[i];
    const double clamped = std::isnan(a) ? 0 : std::fmin(std::fmax(std::trunc(a), -2147483648.0), 2147483647.0);
    EXPECT_EQ(results[i], static_cast<std::int32_t>(clamped)) << a;
    const std::uint64_t wanted = std::isnan(a)                 ? std::uint64_t{1} << 63
                                 : !(a > 0)                    ? 0
                                 : a >= 18446744073709551616.0 ? ~std::uint64_t{0}
                                                               : static_cast<std::uint64_t>(std::nearbyint(a));
    EXPECT_EQ(wide[i], wanted) << a;
  }
}

TEST(Convert, RoundsToIntegralValues) {
  expect_f32("cvt.rni.f32.f32 %out, %in0;", [](float a, float) { return std::nearbyint(a); });
  expect_f32("cvt.rzi.f32.f32 %out, %in0;", [](float a, float) { return std::trunc(a); });
  expect_f32("cvt.rmi.f32.f32 %out, %in0;", [](float a, float) { return std::floor(a); });
  expect_f32("cvt.rpi.f32.f32 %out, %in0;", [](float a, float) { return std::ceil(a); });
}

TEST(Convert, BetweenIntegerWidths) {
  const std::vector<std::uint32_t> inputs{0,      1,      127,    128,        255,        256,
                                          0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
  const auto check = [&](const std::string& body, const std::function<std::uint64_t(std::uint32_t)>& reference) {
    const auto results = evaluate<std::uint64_t>(body, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      EXPECT_EQ(results[i], reference(inputs[i])) << body << " of " << inputs[i];
  };
  const auto sign8 = [](std::uint32_t a) {
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(a)});
  };
  check("cvt.s64.s32 %out, %in0;",
        [](std::uint32_t a) { return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(a)}); });
  check("cvt.u64.u32 %out, %in0;", [](std::uint32_t a) { return std::uint64_t{a}; });
  check("cvt.s64.s8 %out, %in0;", sign8);
  check("cvt.s32.s8 %r0, %in0; cvt.s64.s32 %out, %r0;", sign8);
  check("cvt.u16.u32 %h0, %in0; cvt.u64.u16 %out, %h0;", [](std::uint32_t a) { return std::uint64_t{a & 0xffff}; });
  check("cvt.sat.u8.s32 %r0, %in0; cvt.u64.u32 %out, %r0;", [](std::uint32_t a) {
    return static_cast<std::uint64_t>(std::clamp<std::int64_t>(static_cast<std::int32_t>(a), 0, 255));
  });
  check("cvt.sat.s16.u32 %h0, %in0; cvt.s64.s16 %out, %h0;",
        [](std::uint32_t a) { return std::uint64_t{std::min(a, 32767u)}; });
}

TEST(Convert, BetweenFloatWidths) {
  expect_f32("{.reg .f64 %x; cvt.f64.f32 %x, %in0; cvt.rn.f32.f64 %out, %x;}", [](float a, float) { return a; });
  expect_f32("cvt.rn.f16.f32 %h0, %in0; cvt.f32.f16 %out, %h0;",
             [](float a, float) { return static_cast<float>(static_cast<_Float16>(a)); });
  const auto up = evaluate<float>("cvt.rp.f32.u32 %out, %in0;", std::vector<std::uint32_t>{16777217, 5});
  EXPECT_EQ(up[0], 16777218.0f);
  const auto zero = evaluate<float>("cvt.rz.f32.u32 %out, %in0;", std::vector<std::uint32_t>{16777219});
  EXPECT_EQ(zero[0], 16777218.0f);
}

TEST(Half, RoundsOnce) {
  // 1 + 2^-10 and 2^-11: the product plus a tiny third operand lies just above a tie.
  const std::vector<std::uint16_t> a{0x3c01, 0x3c00}, b{0x3c01, 0x7bff}, c{0x0001, 0x7bff};
  const auto results = evaluate<std::uint16_t>("fma.rn.f16 %out, %in0, %in1, %in2;", a, b, c);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto value = [](std::uint16_t bits) {
      return static_cast<long double>(static_cast<float>(std::bit_cast<_Float16>(bits)));
    };
    const auto wanted = static_cast<_Float16>(static_cast<double>(value(a[i]) * value(b[i]) + value(c[i])));
    EXPECT_EQ(results[i], std::bit_cast<std::uint16_t>(wanted));
  }
  const auto pairs = evaluate<std::uint32_t>("add.f16x2 %out, %in0, %in1;", std::vector<std::uint32_t>{0x3c004000},
                                             std::vector<std::uint32_t>{0x3c003c00});
  EXPECT_EQ(pairs[0], 0x40004200u);
}

}  // namespace
}  // namespace softgpu::ptx
