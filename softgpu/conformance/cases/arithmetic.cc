// Integers of all widths, bits, rounding, conversions, double-precision functions, half precision.
#include <algorithm>
#include <bit>
#include <cfenv>
#include <climits>
#include <limits>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/kernels/polynomials.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

constexpr int kCount = 256;  // threads of most kernels here: two blocks of 128
const Shape kShape{2, 128};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<long long> wide_words(unsigned seed) {
  std::vector<long long> values(kCount);
  for (int i = 0; i < kCount; ++i) {
    const Philox random = philox(static_cast<unsigned>(i), seed);
    const auto bits = static_cast<unsigned long long>(random.word[0]) << 32 | random.word[1];
    values[i] = static_cast<long long>(bits) >> random.word[2] % 60;  // of all magnitudes
    if (values[i] == 0) values[i] = 3;
  }
  return values;
}

void integer_division(Test& test) {
  const auto a = wide_words(1), b = wide_words(2);
  const auto out = test.zeros<long long>(8 * kCount);
  test.launch("integer_division", kShape, test.upload(a), test.upload(b), out);
  std::vector<long long> want;
  for (int i = 0; i < kCount; ++i) {
    const auto ua = static_cast<unsigned long long>(a[i]), ub = static_cast<unsigned long long>(b[i]);
    const int x = static_cast<int>(a[i]), y = static_cast<int>(b[i]) == 0 ? 7 : static_cast<int>(b[i]);
    want.insert(want.end(), {a[i] / b[i], a[i] % b[i], static_cast<long long>(ua / ub), static_cast<long long>(ua % ub),
                             static_cast<long long>(static_cast<__int128>(a[i]) * b[i] >> 64),
                             static_cast<long long>(static_cast<unsigned __int128>(ua) * ub >> 64),
                             x == INT_MIN && y == -1 ? 0 : x / y, static_cast<unsigned>(x) % static_cast<unsigned>(y)});
  }
  test.equal("results", test.download(out), want);
}

void modular_power(Test& test) {
  const unsigned long long modulus = 0x7ffffffffffffe6full, exponent = 1000003;
  const auto words = wide_words(3);
  std::vector<unsigned long long> bases(words.begin(), words.begin() + 64), want;
  const auto out = test.zeros<unsigned long long>(64);
  test.launch("modular_power", {1, 64}, test.upload(bases), exponent, modulus, out);
  for (const unsigned long long base : bases) {
    unsigned __int128 power = base % modulus, result = 1;
    for (unsigned long long e = exponent; e != 0; e >>= 1) {
      if ((e & 1) != 0) result = result * power % modulus;
      power = power * power % modulus;
    }
    want.push_back(static_cast<unsigned long long>(result));
  }
  test.equal("powers", test.download(out), want);
}

void carry_chains(Test& test) {
  auto a = words(8 * kCount, 4), b = words(8 * kCount, 5);
  for (int i = 0; i < 8 * kCount; i += 3) a[i] = ~b[i];  // long carries
  const auto sums = test.zeros<unsigned>(8 * kCount), products = test.zeros<unsigned>(4 * kCount);
  test.launch("carry_chains", kShape, test.upload(a), test.upload(b), sums, products);
  std::vector<unsigned> want_sums, want_products;
  for (int i = 0; i < kCount; ++i) {
    unsigned long long carry = 0;
    for (int j = 8 * i; j < 8 * i + 8; ++j) {
      carry += static_cast<unsigned long long>(a[j]) + b[j];
      want_sums.push_back(static_cast<unsigned>(carry));
      carry >>= 32;
    }
    const auto x = static_cast<unsigned long long>(a[8 * i + 1]) << 32 | a[8 * i];
    const auto y = static_cast<unsigned long long>(b[8 * i + 1]) << 32 | b[8 * i];
    const auto product = static_cast<unsigned __int128>(x) * y;
    for (int j = 0; j < 4; ++j) want_products.push_back(static_cast<unsigned>(product >> 32 * j));
  }
  test.equal("sums", test.download(sums), want_sums);
  test.equal("products", test.download(products), want_products);
}

unsigned reversed(unsigned x) {
  unsigned result = 0;
  for (int bit = 0; bit < 32; ++bit) result |= (x >> bit & 1) << (31 - bit);
  return result;
}

void bits(Test& test) {
  const auto a = words(kCount, 6), b = words(kCount, 7);
  const auto out = test.zeros<unsigned>(12 * kCount);
  test.launch("bits", kShape, test.upload(a), test.upload(b), out);
  std::vector<unsigned> want;
  for (int i = 0; i < kCount; ++i) {
    const unsigned x = a[i], y = b[i], s = y & 63;
    const auto pair = static_cast<unsigned long long>(y) << 32 | x;
    const auto byte = [&](int at) { return static_cast<unsigned>(pair >> 8 * at & 255); };
    const unsigned shifted = x >> (y & 31);
    want.insert(want.end(),
                {byte(0) | byte(5) << 8 | byte(2) << 16 | byte(7) << 24, (x & y) | (~x & 0x0ff00ff0u), x >> 5 & 0x7ff,
                 static_cast<unsigned>(static_cast<int>(x) >> 20), (y & ~0x3ffe00u) | (x << 9 & 0x3ffe00u), reversed(x),
                 shifted == 0 ? ~0u : 31u - static_cast<unsigned>(std::countl_zero(shifted)),
                 static_cast<unsigned>(pair << (x & 31) >> 32), static_cast<unsigned>(pair >> std::min(s, 32u)),
                 s > 31 ? 0 : x << s, static_cast<unsigned>(static_cast<int>(x) >> std::min(s, 31u)),
                 static_cast<unsigned>(std::popcount(x)) << 16 | static_cast<unsigned>(std::countl_zero(x | 1))});
  }
  test.equal("results", test.download(out), want);
}

int saturated(long long value) {
  return static_cast<int>(std::clamp<long long>(value, INT_MIN, INT_MAX));
}

void integer_simd(Test& test) {
  const auto ua = words(kCount, 8), ub = words(kCount, 9);
  const std::vector<int> a(ua.begin(), ua.end()), b(ub.begin(), ub.end());
  const auto out = test.zeros<int>(8 * kCount);
  test.launch("integer_simd", kShape, test.upload(a), test.upload(b), out);
  std::vector<int> want;
  for (int i = 0; i < kCount; ++i) {
    int signed_sum = 1000, mixed = -5, low = 3;
    unsigned high = 4;
    for (int j = 0; j < 4; ++j) {
      signed_sum += static_cast<std::int8_t>(ua[i] >> 8 * j) * static_cast<std::int8_t>(ub[i] >> 8 * j);
      mixed += static_cast<std::uint8_t>(ua[i] >> 8 * j) * static_cast<std::int8_t>(ub[i] >> 8 * j);
    }
    for (int j = 0; j < 2; ++j) {
      low += static_cast<std::int16_t>(ua[i] >> 16 * j) * static_cast<std::int8_t>(ub[i] >> 8 * j);
      high += static_cast<std::uint16_t>(ua[i] >> 16 * j) * static_cast<unsigned>(ub[i] >> (8 * j + 16) & 255);
    }
    const auto narrow = [](int value) { return static_cast<long long>(static_cast<int>(value << 8) >> 8); };
    const long long wide_a = a[i], wide_b = b[i];
    want.insert(want.end(),
                {signed_sum, mixed, low, static_cast<int>(high), saturated(wide_a + wide_b), saturated(wide_a - wide_b),
                 static_cast<int>(std::max(ua[i], ub[i]) - std::min(ua[i], ub[i]) + 17),
                 static_cast<int>(narrow(a[i]) * narrow(b[i]) + 9)});
  }
  test.equal("results", test.download(out), want);
}

// The host computes with the same rounding; the volatile operands keep the compiler from computing for it.
void append_rounded(int mode, float x, float y, float z, std::vector<float>& out) {
  std::fesetround(mode);
  volatile float a = x, b = y, c = z, magnitude = std::fabs(x);
  volatile float sum = a + b, product = a * b, fused = std::fma(a, b, c), quotient = a / b;
  volatile float root = std::sqrt(magnitude);
  std::fesetround(FE_TONEAREST);
  out.insert(out.end(), {sum, product, fused, quotient, root});
}

void rounding(Test& test) {
  auto a = uniform(kCount, 10, -100, 100), b = uniform(kCount, 11, -3, 3), c = uniform(kCount, 12, -1e-3f, 1e-3f);
  const float large = std::numeric_limits<float>::max(), tiny = std::numeric_limits<float>::denorm_min();
  const float special[][3] = {
      {large, large, 0}, {-large, large, 1}, {tiny, 0.5f, 0}, {-tiny, 0.5f, tiny}, {1, 3, tiny}};
  for (int i = 0; i < 5; ++i) a[i] = special[i][0], b[i] = special[i][1], c[i] = special[i][2];
  const auto out = test.zeros<float>(20 * kCount);
  test.launch("rounding", kShape, test.upload(a), test.upload(b), test.upload(c), out);
  std::vector<float> want;
  for (int i = 0; i < kCount; ++i) {
    for (const int mode : {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD}) {
      append_rounded(mode, a[i], b[i], c[i], want);
    }
  }
  test.equal("results", test.download(out), want);
}

// Out of range: the nearest integer of the type. NaN as f32: 0.
template <class Integer>
long long converted(double value, int mode) {
  if (std::isnan(value)) return 0;
  std::fesetround(mode);
  volatile double operand = value;
  const double rounded = std::nearbyint(operand);
  std::fesetround(FE_TONEAREST);
  const double low = std::numeric_limits<Integer>::min(), high = std::numeric_limits<Integer>::max();
  return static_cast<long long>(std::clamp<double>(rounded, low, high));
}

int narrowed(double value, int mode) {
  std::fesetround(mode);
  volatile double operand = value;
  volatile float result = static_cast<float>(operand);
  std::fesetround(FE_TONEAREST);
  return std::bit_cast<int>(static_cast<float>(result));
}

void conversions(Test& test) {
  auto a = uniform(kCount, 13, -50, 50);
  auto b = uniform_double(kCount, 14, -5e9, 5e9);
  const float special[] = {0.5f, 1.5f, 2.5f, -0.5f, -2.5f, INFINITY, -INFINITY, 3e9f, -3e9f, 5e9f, -0.0f, kNan};
  std::copy(std::begin(special), std::end(special), a.begin());
  std::copy(std::begin(special), std::end(special) - 1, b.begin());
  const auto out = test.zeros<long long>(10 * kCount);
  test.launch("conversions", kShape, test.upload(a), test.upload(b), out);
  std::vector<long long> want;
  for (int i = 0; i < kCount; ++i) {
    const int hashed = static_cast<int>(static_cast<unsigned>(i) * 2654435761u);
    const float kept = std::fmin(std::fmax(a[i], 0.0f), 1.0f);
    want.insert(want.end(), {converted<int>(a[i], FE_TOWARDZERO), converted<int>(a[i], FE_TONEAREST),
                             converted<int>(a[i], FE_DOWNWARD), converted<int>(a[i], FE_UPWARD),
                             converted<int>(b[i], FE_TONEAREST), converted<unsigned>(a[i], FE_TOWARDZERO),
                             converted<unsigned>(b[i], FE_TOWARDZERO), narrowed(b[i], FE_TOWARDZERO),
                             narrowed(hashed, FE_UPWARD), std::bit_cast<int>(kept == 0 ? 0.0f : kept)});
  }
  test.equal("results", test.download(out), want);
}

void double_functions(Test& test) {
  const auto in = uniform_double(kCount, 15, -40, 40);
  const auto out = test.zeros<double>(6 * kCount);
  test.launch("double_functions", kShape, test.upload(in), out);
  std::vector<double> same, near;
  for (const double x : in) {
    const double positive = std::fabs(x) + 1e-3;
    same.insert(same.end(), {polynomials::exp(x), polynomials::log(positive), polynomials::sine_or_cosine(x, 0),
                             polynomials::sine_or_cosine(x, 1), std::sqrt(std::fabs(x)), 1.0 / x});
    near.insert(near.end(),
                {std::exp(x), std::log(positive), std::sin(x), std::cos(x), std::sqrt(std::fabs(x)), 1 / x});
  }
  const auto got = test.download(out);
  test.equal("as the host computes", got, same);
  test.near("as the C library computes", got, near, 4e-15);
}

void approximate_functions(Test& test) {
  const auto in = uniform(kCount, 16, -3, 3);
  const auto out = test.zeros<float>(7 * kCount);
  test.launch("approximate_functions", kShape, test.upload(in), out);
  std::vector<float> want;
  for (const double x : in) {
    const double positive = std::fabs(static_cast<float>(x)) + 1e-3f;
    for (const double value : {std::exp2(x), std::log2(positive), std::sin(x), std::cos(x), 1 / std::sqrt(positive),
                               std::sqrt(positive), 1 / positive}) {
      want.push_back(static_cast<float>(value));
    }
  }
  test.near("results", test.download(out), want, 1e-6);
}

std::vector<unsigned short> halves(int count, unsigned seed) {
  std::vector<unsigned short> values(count);
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<_Float16>(8 * unit_float(random_word(seed, i)) - 4);
    values[i] = std::bit_cast<unsigned short>(value);
  }
  return values;
}

_Float16 half_of(unsigned short bits) {
  return std::bit_cast<_Float16>(bits);
}

unsigned short half_fma(unsigned short a, unsigned short b, unsigned short c) {
  // The product is exact in double and the sum nearly always, so it is rounded once.
  const double sum =
      static_cast<double>(half_of(a)) * static_cast<double>(half_of(b)) + static_cast<double>(half_of(c));
  return std::bit_cast<unsigned short>(static_cast<_Float16>(sum));
}

void half_arithmetic(Test& test) {
  auto a = halves(kCount, 17), b = halves(kCount, 18), c = halves(kCount, 19);
  a[0] = 0x0001, b[0] = 0x3800, c[0] = 0x0001;  // subnormals
  a[1] = 0x7bff, b[1] = 0x7bff, c[1] = 0x7c00;  // overflow, infinity
  const auto out = test.zeros<unsigned short>(5 * kCount);
  const auto pairs = test.zeros<unsigned>(kCount);
  const auto wide = test.zeros<float>(2 * kCount);
  test.launch("half_arithmetic", kShape, test.upload(a), test.upload(b), test.upload(c), out, pairs, wide);
  std::vector<unsigned short> want;
  std::vector<unsigned> want_pairs;
  std::vector<float> want_wide;
  const auto bits = [](_Float16 value) { return std::bit_cast<unsigned short>(value); };
  for (int i = 0; i < kCount; ++i) {
    const _Float16 x = half_of(a[i]), y = half_of(b[i]), z = half_of(c[i]);
    want.insert(want.end(), {bits(x + y), bits(x * y), half_fma(a[i], b[i], c[i]), bits(x - z), bits(-x)});
    want_pairs.push_back(half_fma(a[i], c[i], a[i]) | static_cast<unsigned>(half_fma(b[i], a[i], b[i])) << 16);
    const auto value = static_cast<float>(x);
    want_wide.insert(want_wide.end(), {value, static_cast<float>(static_cast<_Float16>(value * 1.001f))});
  }
  test.equal("results", test.download(out), want);
  test.equal("pairs", test.download(pairs), want_pairs);
  test.equal("single precision", test.download(wide), want_wide);
}

void half_dot(Test& test) {
  const int n = 1000;
  const auto a = halves(n, 20), b = halves(n, 21);
  const auto out = test.zeros<float>(1);
  test.launch("half_dot", {1, 32}, n, test.upload(a), test.upload(b), out);
  double want = 0;
  for (int i = 0; i < n; ++i) want += static_cast<double>(half_of(a[i])) * static_cast<double>(half_of(b[i]));
  test.near("dot", test.download(out), {static_cast<float>(want)}, 1e-5);
}

void bfloat_product(Test& test) {
  const auto a = words(kCount, 22), b = words(kCount, 23);
  std::vector<unsigned short> x(kCount), y(kCount), want(kCount);
  for (int i = 0; i < kCount; ++i) {
    x[i] = static_cast<unsigned short>((a[i] & 0x80ff) | 0x3f00);
    y[i] = static_cast<unsigned short>((b[i] & 0x80ff) | 0x4000);
    const double product = static_cast<double>(std::bit_cast<float>(static_cast<unsigned>(x[i]) << 16)) *
                           std::bit_cast<float>(static_cast<unsigned>(y[i]) << 16);
    int exponent = 0;
    const double mantissa = std::frexp(product, &exponent);  // to 8 bits, ties to even
    const auto rounded = static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8));
    want[i] = static_cast<unsigned short>(std::bit_cast<unsigned>(rounded) >> 16);
  }
  const auto out = test.zeros<unsigned short>(kCount);
  test.launch("bfloat_product", kShape, test.upload(x), test.upload(y), out);
  test.equal("products", test.download(out), want);
}

void subnormals(Test& test) {
  std::vector<float> a(32), want;
  const float least_normal = 1.1754944e-38f;
  for (int i = 0; i < 32; ++i) a[i] = std::ldexp(i % 2 == 0 ? 1.5f : -1.0f, -120 - i);
  for (const float x : a) {
    const auto flush = [&](float value) {
      return std::fabs(value) < least_normal ? std::copysign(0.0f, value) : value;
    };
    want.insert(want.end(), {x * 0.5f, flush(flush(x) * 0.5f), flush(flush(x) + least_normal)});
  }
  const auto out = test.zeros<float>(96);
  test.launch("subnormals", {1, 32}, test.upload(a), out);
  test.equal("results", test.download(out), want);
}

void comparisons(Test& test) {
  auto a = integers(64, 24, -2, 2), b = integers(64, 25, -2, 2);
  std::vector<float> x(a.begin(), a.end()), y(b.begin(), b.end());
  x[0] = kNan, y[1] = kNan, x[2] = y[2] = kNan, x[3] = -INFINITY, y[4] = INFINITY;
  const auto extremes = test.zeros<float>(128);
  const auto truths = test.zeros<int>(64);
  test.launch("comparisons", {1, 64}, test.upload(x), test.upload(y), extremes, truths);
  std::vector<float> want_extremes;
  std::vector<int> want_truths;
  for (int i = 0; i < 64; ++i) {
    const float p = x[i], q = y[i];
    want_extremes.insert(want_extremes.end(), {std::fmin(p, q), std::fmax(p, q)});
    want_truths.push_back((p < q) | (p <= q) << 1 | (p == q) << 2 | (p != q) << 3 | (!(p < q)) << 4 | (!(p >= q)) << 5 |
                          std::isunordered(p, q) << 6);
  }
  test.near("extremes", test.download(extremes), want_extremes, 0);
  test.equal("truths", test.download(truths), want_truths);
}

constexpr Case kCases[] = {
    {"integer_division", "arithmetic", integer_division},
    {"modular_power", "arithmetic", modular_power},
    {"carry_chains", "arithmetic", carry_chains},
    {"bits", "arithmetic", bits},
    {"integer_simd", "arithmetic", integer_simd},
    {"rounding", "arithmetic", rounding},
    {"conversions", "arithmetic", conversions},
    {"double_functions", "arithmetic", double_functions},
    {"approximate_functions", "arithmetic", approximate_functions, Bits::kFree},
    {"half_arithmetic", "arithmetic", half_arithmetic},
    {"half_dot", "arithmetic", half_dot},
    {"bfloat_product", "arithmetic", bfloat_product},
    {"subnormals", "arithmetic", subnormals},
    {"comparisons", "arithmetic", comparisons, Bits::kFree},
};

}  // namespace

const Field kArithmetic{"arithmetic", kCases};

}  // namespace softgpu::conformance
