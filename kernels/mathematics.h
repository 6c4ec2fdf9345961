// Functions of real numbers to a float's full precision: computed in double, by a reduction of the range and a short series.
// exp(10.3): 10.3 = 15 ln 2 - 0.0972, so exp(10.3) = 2^15 exp(-0.0972), and 13 terms of the series give 16 digits.
//
// Errors: below 1e-12 relative before the result is rounded to float; sine, cosine and tangent of arguments over 2^30 are
// NaN, since the reduction would have lost their digits.
#pragma once

#include "element.h"

constexpr double kPi = 3.14159265358979323846;
constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
constexpr double kHalfPiHigh = 1.57079632679489655800e+00, kHalfPiLow = 6.12323399573676603587e-17;

FAIRLEAD_DEVICE double nan_f64() {
  return __builtin_nan("");
}
FAIRLEAD_DEVICE double infinity_f64() {
  return __builtin_inf();
}
FAIRLEAD_DEVICE bool is_nan(double x) {
  return x != x;
}
FAIRLEAD_DEVICE double bits_to_double(long long bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}
FAIRLEAD_DEVICE long long double_to_bits(double x) {
  long long bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
// To the nearest whole number, ties to even, for |x| < 2^51.
FAIRLEAD_DEVICE double nearest(double x) {
  const double shift = 6755399441055744.0;  // 1.5 * 2^52: what is added to it loses its fraction
  return fabs(x) < 2251799813685248.0 ? x + shift - shift : x;
}
FAIRLEAD_DEVICE double floor_f64(double x) {
  const double near = nearest(x);
  return near > x ? near - 1 : near;
}
FAIRLEAD_DEVICE double sqrt_f64(double x) {
  return __nvvm_sqrt_rn_d(x);
}

FAIRLEAD_DEVICE double exp_f64(double x) {
  if (is_nan(x)) return x;
  if (x > 700) return infinity_f64();
  if (x < -700) return 0;
  const double n = nearest(x * 1.44269504088896340736);
  const double r = fma(n, -kLn2Low, fma(n, -kLn2High, x));
  double sum = 1;
  for (int k = 14; k > 0; --k) sum = fma(sum, r / k, 1.0);
  return sum * bits_to_double(((long long)n + 1023) << 52);
}

// Natural logarithm; x is no denormal double.
FAIRLEAD_DEVICE double log_f64(double x) {
  if (is_nan(x) || x < 0) return nan_f64();
  if (x == 0) return -infinity_f64();
  if (x == infinity_f64()) return x;
  const long long bits = double_to_bits(x);
  int exponent = (int)(bits >> 52) - 1023;
  double m = bits_to_double((bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL);  // [1, 2)
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int k = 23; k > 0; k -= 2) sum = fma(sum, square, 1.0 / k);
  return fma((double)exponent, kLn2High, fma((double)exponent, kLn2Low, 2 * s * sum));
}

FAIRLEAD_DEVICE double expm1_f64(double x) {
  return fabs(x) < 1e-2 ? x * (1 + x * (0.5 + x * (1.0 / 6 + x * (1.0 / 24 + x * (1.0 / 120 + x / 720)))))
                        : exp_f64(x) - 1;
}
FAIRLEAD_DEVICE double log1p_f64(double x) {
  return fabs(x) < 1e-4 ? x * (1 - x * (0.5 - x * (1.0 / 3 - x * (0.25 - x / 5)))) : log_f64(1 + x);
}

// Sine and cosine of x.
FAIRLEAD_DEVICE void sine_and_cosine(double x, double& sine, double& cosine) {
  if (!(fabs(x) < 1073741824.0)) {
    sine = cosine = nan_f64();
    return;
  }
  const double n = nearest(x * 0.63661977236758134308);
  const double r = fma(n, -kHalfPiLow, fma(n, -kHalfPiHigh, x));
  const double square = r * r;
  double s = 1;
  double c = 1;
  for (int k = 16; k > 0; k -= 2) {
    s = 1 - s * square / (k * (k + 1));
    c = 1 - c * square / (k * (k - 1));
  }
  s *= r;
  const int quarter = (int)((long long)n & 3);
  sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
  cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}
FAIRLEAD_DEVICE double sin_f64(double x) {
  double sine, cosine;
  sine_and_cosine(x, sine, cosine);
  return sine;
}
FAIRLEAD_DEVICE double cos_f64(double x) {
  double sine, cosine;
  sine_and_cosine(x, sine, cosine);
  return cosine;
}
FAIRLEAD_DEVICE double tan_f64(double x) {
  double sine, cosine;
  sine_and_cosine(x, sine, cosine);
  return sine / cosine;
}

// Halving the angle twice, tan(a / 2) = t / (1 + sqrt(1 + t^2)), leaves at most tan(pi / 16) = 0.199 to the series.
FAIRLEAD_DEVICE double atan_f64(double x) {
  if (is_nan(x)) return x;
  const bool inverted = fabs(x) > 1;
  double t = inverted ? 1 / x : x;
  for (int i = 0; i < 2; ++i) t = t / (1 + sqrt_f64(1 + t * t));
  const double square = t * t;
  double sum = 0;
  for (int k = 25; k > 0; k -= 2) sum = 1.0 / k - sum * square;
  const double angle = 4 * t * sum;
  return inverted ? (x > 0 ? kPi / 2 : -kPi / 2) - angle : angle;
}
FAIRLEAD_DEVICE double atan2_f64(double y, double x) {
  if (is_nan(x) || is_nan(y)) return nan_f64();
  const bool negative_y = __builtin_copysign(1.0, y) < 0;
  const bool negative_x = __builtin_copysign(1.0, x) < 0;
  double angle;
  if (y == 0) {
    angle = negative_x ? kPi : 0;
  } else if (fabs(x) == infinity_f64() && fabs(y) == infinity_f64()) {
    angle = negative_x ? 3 * kPi / 4 : kPi / 4;
  } else {
    angle = atan_f64(fabs(y) / fabs(x));
    if (negative_x) angle = kPi - angle;
  }
  return negative_y ? -angle : angle;
}
FAIRLEAD_DEVICE double asin_f64(double x) {
  if (!(fabs(x) <= 1)) return nan_f64();
  return fabs(x) == 1 ? x * kPi / 2 : atan_f64(x / sqrt_f64((1 - x) * (1 + x)));
}
FAIRLEAD_DEVICE double acos_f64(double x) {
  return kPi / 2 - asin_f64(x);
}

FAIRLEAD_DEVICE double sinh_f64(double x) {
  if (fabs(x) < 1e-2) return x * (1 + x * x / 6 * (1 + x * x / 20));
  return 0.5 * (exp_f64(x) - exp_f64(-x));
}
FAIRLEAD_DEVICE double cosh_f64(double x) {
  return 0.5 * (exp_f64(x) + exp_f64(-x));
}
FAIRLEAD_DEVICE double asinh_f64(double x) {
  const double size = fabs(x);
  if (size < 1e-2) return x * (1 - x * x / 6 * (1 - x * x * 9 / 20));
  return __builtin_copysign(log_f64(size + sqrt_f64(size * size + 1)), x);
}
FAIRLEAD_DEVICE double acosh_f64(double x) {
  return x < 1 ? nan_f64() : log_f64(x + sqrt_f64(x * x - 1));
}
FAIRLEAD_DEVICE double atanh_f64(double x) {
  return fabs(x) > 1 ? nan_f64() : 0.5 * log1p_f64(2 * x / (1 - x));
}

// erf(x) = 2 / sqrt(pi) exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...); all terms are positive. Beyond 6 it is 1 in double.
FAIRLEAD_DEVICE double erf_f64(double x) {
  if (is_nan(x)) return x;
  if (fabs(x) > 6) return x > 0 ? 1 : -1;
  double term = x;
  double sum = x;
  for (int n = 1; n < 160 && fabs(term) > 1e-18 * fabs(sum); ++n) {
    term *= 2 * x * x / (2 * n + 1);
    sum += term;
  }
  return 1.12837916709551257390 * exp_f64(-x * x) * sum;
}

FAIRLEAD_DEVICE double pow_f64(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (is_nan(x) || is_nan(y)) return nan_f64();
  const bool whole = fabs(y) >= 4503599627370496.0 || nearest(y) == y;
  const bool odd = whole && fabs(y) < 9007199254740992.0 && ((long long)y & 1) != 0;
  const bool negative = __builtin_copysign(1.0, x) < 0;
  if (x == -1 && fabs(y) == infinity_f64()) return 1;
  if (negative && x != 0 && x != -infinity_f64() && !whole) return nan_f64();
  double result;
  if (x == 0) {
    result = y > 0 ? 0 : infinity_f64();
  } else {
    result = exp_f64(y * log_f64(fabs(x)));
  }
  return negative && odd ? -result : result;
}
// A remainder of the divisor's sign (Python's %) and one of the dividend's (C's fmod); exact while the quotient is below 2^53.
FAIRLEAD_DEVICE double truncated(double x) {
  return x < 0 ? -floor_f64(-x) : floor_f64(x);
}
FAIRLEAD_DEVICE double fmod_f64(double x, double y) {
  if (y == 0 || is_nan(x) || is_nan(y) || fabs(x) == infinity_f64()) return nan_f64();
  if (fabs(y) == infinity_f64()) return x;
  double rest = fabs(x);
  const double divisor = fabs(y);
  while (rest >= divisor) {  // a float's quotient has up to 277 binary digits: 50 of them at a time
    double step = divisor;
    while (rest / step >= 1125899906842624.0) step *= 1125899906842624.0;
    rest = fma(-floor_f64(rest / step), step, rest);
    if (rest < 0) rest += step;
  }
  return __builtin_copysign(rest, x);
}
FAIRLEAD_DEVICE double remainder_f64(double x, double y) {
  const double rest = fmod_f64(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
