// Every floating-point opcode against a reference; the directed rounding modes against the host's.
#include <cfenv>

#include "softgpu/ptx/opcode_test.h"

namespace softgpu::ptx {
namespace {

using namespace testing;  // the short names of types

template <class T>
std::string name_of() {
  return sizeof(T) == 4 ? "f32" : "f64";
}
template <class T>
T flushed(T a) {
  return sizeof(T) == 4 && std::fabs(a) < std::numeric_limits<T>::min() ? std::copysign(T{0}, a) : a;
}
template <class T>
T saturated(T a) {
  return a > T{0} ? std::min(a, T{1}) : T{0};
}

// Evaluates in the host's rounding mode; volatile keeps the compiler from doing it before.
template <class F>
auto in_mode(int mode, const F& compute) {
  std::fesetround(mode);
  volatile auto result = compute();
  std::fesetround(FE_TONEAREST);
  return static_cast<std::remove_cv_t<decltype(result)>>(result);
}

struct Rounding {
  const char* suffix;
  int mode;
};
constexpr Rounding kRoundings[] = {
    {".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}};

// `plain`: also without a rounding mode, which is .rn. Flushing and saturation exist for f32.
template <class T, class Signature, class F>
void expect_rounded(const std::string& name, bool plain, const F& compute) {
  for (const Rounding& rounding : kRoundings) {
    const auto rounded = [&](auto... values) {
      return in_mode(rounding.mode, [&] { return compute(static_cast<T>(*const_cast<volatile T*>(&values))...); });
    };
    expect_op<Signature>(name + rounding.suffix + "." + name_of<T>(), rounded);
    if constexpr (sizeof(T) == 4) {
      expect_op<Signature>(name + rounding.suffix + ".ftz.f32",
                           [&](auto... values) { return flushed(rounded(flushed(values)...)); });
    }
  }
  const auto nearest = [&](auto... values) { return compute(values...); };
  if (plain) expect_op<Signature>(name + "." + name_of<T>(), nearest);
  if constexpr (sizeof(T) == 4) {
    if (plain) {
      expect_op<Signature>(name + ".ftz.f32", [&](auto... values) { return flushed(compute(flushed(values)...)); });
    }
  }
}

template <class T>
void expect_arithmetic() {
  expect_rounded<T, T(T, T)>("add", true, [](T a, T b) { return a + b; });
  expect_rounded<T, T(T, T)>("sub", true, [](T a, T b) { return a - b; });
  expect_rounded<T, T(T, T)>("mul", true, [](T a, T b) { return a * b; });
  expect_rounded<T, T(T, T)>("div", false, [](T a, T b) { return a / b; });
  expect_rounded<T, T(T, T, T)>("fma", false, [](T a, T b, T c) { return std::fma(a, b, c); });
  expect_rounded<T, T(T, T, T)>("mad", false, [](T a, T b, T c) { return std::fma(a, b, c); });
  expect_rounded<T, T(T)>("sqrt", false, [](T a) { return std::sqrt(a); });
  expect_rounded<T, T(T)>("rcp", false, [](T a) { return T{1} / a; });
}
TEST(FloatOpcodes, Arithmetic32InEveryRoundingMode) {
  expect_arithmetic<float>();
}
TEST(FloatOpcodes, Arithmetic64InEveryRoundingMode) {
  expect_arithmetic<double>();
}

TEST(FloatOpcodes, Saturation) {
  expect_op<float(float, float)>("add.sat.f32", [](float a, float b) { return saturated(a + b); });
  expect_op<float(float, float)>("sub.sat.f32", [](float a, float b) { return saturated(a - b); });
  expect_op<float(float, float)>("mul.sat.f32", [](float a, float b) { return saturated(a * b); });
  expect_op<float(float, float)>("add.rn.ftz.sat.f32",
                                 [](float a, float b) { return saturated(flushed(flushed(a) + flushed(b))); });
  expect_op<float(float, float, float)>("fma.rn.sat.f32",
                                        [](float a, float b, float c) { return saturated(std::fma(a, b, c)); });
  expect_op<float(float, float, float)>("fma.rn.ftz.sat.f32", [](float a, float b, float c) {
    return saturated(flushed(std::fma(flushed(a), flushed(b), flushed(c))));
  });
}

template <class T>
T least(T a, T b) {
  if (a != a || b != b) return a != a ? b : a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T most(T a, T b) {
  if (a != a || b != b) return a != a ? b : a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
float with_sign(float magnitude, float a, float b) {
  return std::signbit(a) != std::signbit(b) ? -magnitude : magnitude;
}

TEST(FloatOpcodes, ExtremaTreatNaNAndZeroAsStated) {
  expect_op<float(float, float)>("min.f32", least<float>);
  expect_op<float(float, float)>("max.f32", most<float>);
  expect_op<double(double, double)>("min.f64", least<double>);
  expect_op<double(double, double)>("max.f64", most<double>);
  expect_op<float(float, float)>("min.ftz.f32", [](float a, float b) { return least(flushed(a), flushed(b)); });
  expect_op<float(float, float)>("max.ftz.f32", [](float a, float b) { return most(flushed(a), flushed(b)); });
  const auto nan_or = [](auto pick) {
    return [=](float a, float b) { return a != a || b != b ? std::numeric_limits<float>::quiet_NaN() : pick(a, b); };
  };
  expect_op<float(float, float)>("min.NaN.f32", nan_or(least<float>));
  expect_op<float(float, float)>("max.NaN.f32", nan_or(most<float>));
  const auto signed_by = [](auto pick) {
    return [=](float a, float b) { return with_sign(pick(std::fabs(a), std::fabs(b)), a, b); };
  };
  expect_op<float(float, float)>("min.xorsign.abs.f32", signed_by(least<float>));
  expect_op<float(float, float)>("max.xorsign.abs.f32", signed_by(most<float>));
  expect_op<float(float, float)>("min.NaN.xorsign.abs.f32", signed_by(nan_or(least<float>)));
  expect_op<float(float, float)>("max.NaN.xorsign.abs.f32", signed_by(nan_or(most<float>)));
  expect_op<float(float, float)>("max.ftz.xorsign.abs.f32", [](float a, float b) {
    return with_sign(most(std::fabs(flushed(a)), std::fabs(flushed(b))), a, b);
  });
}

template <class T>
void expect_properties() {
  const auto expect = [](const char* property, auto holds) {
    expect_op<bool(T)>("testp." + std::string(property) + "." + name_of<T>(), holds);
  };
  expect("finite", [](T a) { return std::isfinite(a); });
  expect("infinite", [](T a) { return std::isinf(a); });
  expect("number", [](T a) { return a == a; });
  expect("notanumber", [](T a) { return a != a; });
  expect("normal", [](T a) { return std::isnormal(a) || a == 0; });  // unlike C's, PTX's zeros are normal
  expect("subnormal", [](T a) { return a != 0 && std::fabs(a) < std::numeric_limits<T>::min(); });
}

TEST(FloatOpcodes, SignsAndProperties) {
  expect_op<float(float)>("neg.f32", [](float a) { return -a; });
  expect_op<double(double)>("neg.f64", [](double a) { return -a; });
  expect_op<float(float)>("neg.ftz.f32", [](float a) { return -flushed(a); });
  expect_op<float(float)>("abs.f32", [](float a) { return std::fabs(a); });
  expect_op<double(double)>("abs.f64", [](double a) { return std::fabs(a); });
  expect_op<float(float)>("abs.ftz.f32", [](float a) { return std::fabs(flushed(a)); });
  expect_op<float(float, float)>("copysign.f32", [](float a, float b) { return std::copysign(b, a); });
  expect_op<double(double, double)>("copysign.f64", [](double a, double b) { return std::copysign(b, a); });
  expect_properties<float>();
  expect_properties<double>();
}

// Approximate functions: within 2^-20 of the truth; the hardware's own bounds are wider.
TEST(FloatOpcodes, Approximations) {
  constexpr double kAllowed = 0x1p-20;
  const auto expect = [&](const std::string& name, auto function) {
    const auto reference = [=](float a) { return static_cast<float>(function(static_cast<double>(a))); };
    expect_near<float(float)>(name + ".approx.f32", reference, kAllowed);
    expect_near<float(float)>(
        name + ".approx.ftz.f32", [=](float a) { return flushed(reference(flushed(a))); }, kAllowed);
  };
  expect("rcp", [](double a) { return 1 / a; });
  expect("sqrt", [](double a) { return std::sqrt(a); });
  expect("rsqrt", [](double a) { return 1 / std::sqrt(a); });
  expect("ex2", [](double a) { return std::exp2(a); });
  expect("lg2", [](double a) { return std::log2(a); });
  expect("sin", [](double a) { return std::sin(a); });
  expect("cos", [](double a) { return std::cos(a); });
  expect_near<float(float)>(
      "tanh.approx.f32", [](float a) { return std::tanh(a); }, kAllowed);
  expect_near<float(float, float)>(
      "div.approx.f32", [](float a, float b) { return a / b; }, kAllowed);
  expect_near<float(float, float)>(
      "div.full.f32", [](float a, float b) { return a / b; }, kAllowed);
  expect_near<float(float, float)>(
      "div.approx.ftz.f32", [](float a, float b) { return flushed(flushed(a) / flushed(b)); }, kAllowed);
  expect_near<double(double)>(
      "rcp.approx.ftz.f64", [](double a) { return 1 / a; }, kAllowed);
  expect_near<double(double)>(
      "rsqrt.approx.f64", [](double a) { return 1 / std::sqrt(a); }, kAllowed);
  expect_near<double(double)>(
      "rsqrt.approx.ftz.f64", [](double a) { return 1 / std::sqrt(a); }, kAllowed);
}

// ---- halves: exact in double, rounded once by SmallFloat

template <class Half>
Half flush_half(Half a) {
  return std::fabs(a.value()) < 0x1p-14 ? Half::from(std::copysign(0.0, a.value())) : a;
}
// Rounds a fused sum once; the sum of products of halves fits long double but for extreme exponents, which overflow.
template <class Half>
Half fused(Half a, Half b, Half c) {
  const long double exact = static_cast<long double>(a.value()) * b.value() + c.value();
  double nearest = static_cast<double>(exact);
  // To odd, so that the second rounding cannot err.
  if (std::isfinite(nearest) && nearest != exact && (std::bit_cast<u64>(nearest) & 1) == 0) {
    nearest = std::nextafter(nearest, exact > nearest ? HUGE_VAL : -HUGE_VAL);
  }
  return Half::from(nearest);
}
template <class Half>
Half relu(Half a) {
  return a.value() != a.value() || a.value() > 0 ? a : Half{};
}

// The scalar form and the form on pairs of one operation.
template <class Half, class F>
void expect_half2(const std::string& name, const std::string& type, const F& compute) {
  using P = Pair<Half>;
  expect_op<Half(Half, Half)>(name + "." + type, compute);
  expect_op<P(P, P)>(name + "." + type + "x2", [&](P a, P b) {
    return P{compute(a.low, b.low), compute(a.high, b.high)};
  });
}
template <class Half, class F>
void expect_half1(const std::string& name, const std::string& type, const F& compute) {
  using P = Pair<Half>;
  expect_op<Half(Half)>(name + "." + type, compute);
  expect_op<P(P)>(name + "." + type + "x2", [&](P a) { return P{compute(a.low), compute(a.high)}; });
}
template <class Half, class F>
void expect_half3(const std::string& name, const std::string& type, const F& compute) {
  using P = Pair<Half>;
  expect_op<Half(Half, Half, Half)>(name + "." + type, compute);
  expect_op<P(P, P, P)>(name + "." + type + "x2", [&](P a, P b, P c) {
    return P{compute(a.low, b.low, c.low), compute(a.high, b.high, c.high)};
  });
}

template <class Half>
void expect_half_arithmetic(const std::string& type) {
  for (const char* rounding : {"", ".rn"}) {
    const auto name = [&](const char* base) { return base + std::string(rounding); };
    expect_half2<Half>(name("add"), type, [](Half a, Half b) { return Half::from(a.value() + b.value()); });
    expect_half2<Half>(name("sub"), type, [](Half a, Half b) { return Half::from(a.value() - b.value()); });
    expect_half2<Half>(name("mul"), type, [](Half a, Half b) { return Half::from(a.value() * b.value()); });
  }
  expect_half3<Half>("fma.rn", type, fused<Half>);
  expect_half3<Half>("fma.rn.relu", type, [](Half a, Half b, Half c) { return relu(fused(a, b, c)); });
  const auto extremum = [](auto pick) {
    return [=](Half a, Half b) { return Half::from(pick(a.value(), b.value())); };
  };
  const auto nan_or = [](auto pick) {
    return [=](double a, double b) { return a != a || b != b ? std::nan("") : pick(a, b); };
  };
  const auto by_sign = [](auto pick) {
    return [=](double a, double b) {
      const double magnitude = pick(std::fabs(a), std::fabs(b));
      return std::signbit(a) != std::signbit(b) ? -magnitude : magnitude;
    };
  };
  expect_half2<Half>("min", type, extremum(least<double>));
  expect_half2<Half>("max", type, extremum(most<double>));
  expect_half2<Half>("min.NaN", type, extremum(nan_or(least<double>)));
  expect_half2<Half>("max.NaN", type, extremum(nan_or(most<double>)));
  expect_half2<Half>("min.xorsign.abs", type, extremum(by_sign(least<double>)));
  expect_half2<Half>("max.xorsign.abs", type, extremum(by_sign(most<double>)));
  expect_half2<Half>("max.NaN.xorsign.abs", type, extremum(by_sign(nan_or(most<double>))));
  expect_half1<Half>("neg", type, [](Half a) { return Half{static_cast<u16>(a.bits ^ 0x8000)}; });
  expect_half1<Half>("abs", type, [](Half a) { return Half{static_cast<u16>(a.bits & 0x7fff)}; });
  expect_half1<Half>("tanh.approx", type, [](Half a) { return Half::from(std::tanh(a.value())); });
}

TEST(HalfOpcodes, Arithmetic16) {
  expect_half_arithmetic<f16>("f16");
  expect_half1<f16>("ex2.approx", "f16", [](f16 a) { return f16::from(std::exp2(a.value())); });
}
TEST(HalfOpcodes, ArithmeticBrain) {
  expect_half_arithmetic<bf16>("bf16");
  expect_half1<bf16>("ex2.approx.ftz", "bf16", [](bf16 a) {
    const double value = std::exp2(a.value());
    return value < 0x1p-126 ? bf16{} : bf16::from(value);
  });
}
TEST(HalfOpcodes, FlushAndSaturate) {
  const auto sum = [](f16 a, f16 b) { return f16::from(a.value() + b.value()); };
  const auto product = [](f16 a, f16 b) { return f16::from(a.value() * b.value()); };
  const auto limited = [](f16 a) { return f16::from(saturated(a.value())); };
  expect_half2<f16>("add.ftz", "f16", [&](f16 a, f16 b) { return flush_half(sum(flush_half(a), flush_half(b))); });
  expect_half2<f16>("add.sat", "f16", [&](f16 a, f16 b) { return limited(sum(a, b)); });
  expect_half2<f16>("sub.sat", "f16", [&](f16 a, f16 b) { return limited(f16::from(a.value() - b.value())); });
  expect_half2<f16>("mul.ftz.sat", "f16",
                    [&](f16 a, f16 b) { return limited(flush_half(product(flush_half(a), flush_half(b)))); });
  expect_half3<f16>("fma.rn.ftz", "f16",
                    [](f16 a, f16 b, f16 c) { return flush_half(fused(flush_half(a), flush_half(b), flush_half(c))); });
  expect_half3<f16>("fma.rn.sat", "f16", [&](f16 a, f16 b, f16 c) { return limited(fused(a, b, c)); });
  expect_half3<f16>("fma.rn.ftz.relu", "f16", [](f16 a, f16 b, f16 c) {
    return relu(flush_half(fused(flush_half(a), flush_half(b), flush_half(c))));
  });
  expect_half1<f16>("neg.ftz", "f16", [](f16 a) { return f16{static_cast<u16>(flush_half(a).bits ^ 0x8000)}; });
  expect_half1<f16>("abs.ftz", "f16", [](f16 a) { return f16{static_cast<u16>(flush_half(a).bits & 0x7fff)}; });
  expect_half2<f16>("min.ftz", "f16",
                    [](f16 a, f16 b) { return f16::from(least(flush_half(a).value(), flush_half(b).value())); });
}

}  // namespace
}  // namespace softgpu::ptx
