// Double-precision functions from additions, multiplications and fused multiply-adds only, so that host and device compute
// the same bits; the host's C library says how near they are.
#pragma once

#ifdef __CUDA_ARCH__
#define CONFORMANCE_MATH static __attribute__((device)) inline
#else
#define CONFORMANCE_MATH inline
#endif

namespace polynomials {

CONFORMANCE_MATH double bits_to_double(unsigned long long bits) {
  return __builtin_bit_cast(double, bits);
}
CONFORMANCE_MATH unsigned long long double_to_bits(double value) {
  return __builtin_bit_cast(unsigned long long, value);
}

// Adding 1.5 * 2^52 leaves the nearest integer in the low bits.
constexpr double kRoundingShift = 6755399441055744.0;

// |x| < 700: x = k ln 2 + r, |r| < 0.35, a Taylor polynomial of degree 13 for r, k into the exponent.
CONFORMANCE_MATH double exp(double x) {
  const double shifted = x * 1.4426950408889634 + kRoundingShift;
  const double k = shifted - kRoundingShift;
  const double r = __builtin_fma(-k, 1.90821492927058770002e-10, __builtin_fma(-k, 6.93147180369123816490e-01, x));
  double sum = 1.0 / 6227020800.0, divisor = 6227020800.0;
  for (int i = 13; i > 0; --i) {
    divisor /= (double)i;
    sum = __builtin_fma(sum, r, 1.0 / divisor);
  }
  return sum * bits_to_double((unsigned long long)((long long)k + 1023) << 52);
}

// x positive and normal: x = 2^k m, m in [0.70, 1.41); with s = (m - 1)/(m + 1), ln m = 2 (s + s^3/3 + s^5/5 + ...).
CONFORMANCE_MATH double log(double x) {
  const unsigned long long bits = double_to_bits(x);
  const long long k = (long long)((bits - 0x3fe6a09e667f3bcdull) >> 52);
  const long long exponent = k >= 2048 ? k - 4096 : k;
  const double m = bits_to_double(bits - ((unsigned long long)exponent << 52));
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double sum = 1.0 / 23.0;
  for (int i = 21; i > 0; i -= 2) sum = __builtin_fma(sum, z, 1.0 / (double)i);
  return __builtin_fma((double)exponent, 0.6931471805599453, 2.0 * s * sum);
}

// |x| < 1e5: reduced by multiples of pi/2 in three parts, then Taylor polynomials.
CONFORMANCE_MATH double sine_or_cosine(double x, int quarter_turns) {
  const double shifted = x * 0.6366197723675814 + kRoundingShift;
  const double k = shifted - kRoundingShift;
  double r = __builtin_fma(-k, 1.5707963267341256, x);
  r = __builtin_fma(-k, 6.077100506303966e-11, r);
  r = __builtin_fma(-k, 2.0222662487959506e-21, r);
  const int quadrant = ((int)(long long)k + quarter_turns) & 3;
  const double z = r * r;
  double sine = 0, cosine = 0;
  for (int i = 10; i > 0; --i) {
    sine = (1.0 + sine) * (-z / (double)(2 * i * (2 * i + 1)));
    cosine = (1.0 + cosine) * (-z / (double)(2 * i * (2 * i - 1)));
  }
  const double value = (quadrant & 1) != 0 ? 1.0 + cosine : __builtin_fma(r, sine, r);
  return (quadrant & 2) != 0 ? -value : value;
}

}  // namespace polynomials
