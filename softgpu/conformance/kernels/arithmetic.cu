// Integers of all widths, bits, rounding, conversions, double-precision functions, half precision.
#include "softgpu/conformance/kernels/common.h"
#include "softgpu/conformance/kernels/polynomials.h"

// Truncating division, remainder and high products, signed and unsigned; divisors are not zero.
KERNEL integer_division(const long long* a, const long long* b, long long* out) {
  const int i = global_index();
  const unsigned long long ua = (unsigned long long)a[i], ub = (unsigned long long)b[i];
  out[8 * i] = a[i] / b[i];
  out[8 * i + 1] = a[i] % b[i];
  out[8 * i + 2] = (long long)(ua / ub);
  out[8 * i + 3] = (long long)(ua % ub);
  out[8 * i + 4] = (long long)((__int128)a[i] * b[i] >> 64);
  out[8 * i + 5] = (long long)((unsigned __int128)ua * ub >> 64);
  const int narrow_b = (int)b[i] == 0 ? 7 : (int)b[i];
  out[8 * i + 6] = (int)a[i] == (int)0x80000000 && narrow_b == -1 ? 0 : (int)a[i] / narrow_b;
  out[8 * i + 7] = (unsigned)a[i] % (unsigned)narrow_b;
}

// a^e mod m for 64-bit numbers below 2^63, by doubling: no 128-bit type.
KERNEL modular_power(const unsigned long long* bases, unsigned long long exponent, unsigned long long modulus,
                     unsigned long long* out) {
  const int i = global_index();
  const auto multiply = [modulus](unsigned long long a, unsigned long long b) {
    unsigned long long sum = 0;
    for (; b != 0; b >>= 1) {
      if ((b & 1) != 0) sum = sum + a >= modulus ? sum + a - modulus : sum + a;
      a = a + a >= modulus ? a + a - modulus : a + a;
    }
    return sum;
  };
  unsigned long long power = bases[i] % modulus, result = 1;
  for (unsigned long long e = exponent; e != 0; e >>= 1) {
    if ((e & 1) != 0) result = multiply(result, power);
    power = multiply(power, power);
  }
  out[i] = result;
}

// 256-bit sums and 128-bit products by carry chains.
KERNEL carry_chains(const unsigned* a, const unsigned* b, unsigned* sums, unsigned* products) {
  const int i = global_index();
  const unsigned *x = a + 8 * i, *y = b + 8 * i;
  unsigned s[8];
  asm("add.cc.u32 %0, %8, %16;\n\t"
      "addc.cc.u32 %1, %9, %17;\n\t"
      "addc.cc.u32 %2, %10, %18;\n\t"
      "addc.cc.u32 %3, %11, %19;\n\t"
      "addc.cc.u32 %4, %12, %20;\n\t"
      "addc.cc.u32 %5, %13, %21;\n\t"
      "addc.cc.u32 %6, %14, %22;\n\t"
      "addc.u32 %7, %15, %23;"
      : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3]), "=r"(s[4]), "=r"(s[5]), "=r"(s[6]), "=r"(s[7])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]), "r"(y[0]), "r"(y[1]),
        "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7]));
  for (int j = 0; j < 8; ++j) sums[8 * i + j] = s[j];
  unsigned p[4];
  asm("mul.lo.u32 %0, %4, %6;\n\t"
      "mul.hi.u32 %1, %4, %6;\n\t"
      "mad.lo.cc.u32 %1, %4, %7, %1;\n\t"
      "madc.hi.u32 %2, %4, %7, 0;\n\t"
      "mad.lo.cc.u32 %1, %5, %6, %1;\n\t"
      "madc.hi.cc.u32 %2, %5, %6, %2;\n\t"
      "addc.u32 %3, 0, 0;\n\t"
      "mad.lo.cc.u32 %2, %5, %7, %2;\n\t"
      "madc.hi.u32 %3, %5, %7, %3;"
      : "=&r"(p[0]), "=&r"(p[1]), "=&r"(p[2]), "=&r"(p[3])
      : "r"(x[0]), "r"(x[1]), "r"(y[0]), "r"(y[1]));
  for (int j = 0; j < 4; ++j) products[4 * i + j] = p[j];
}

// prmt, lop3, bfe, bfi, brev, bfind, funnel shifts, population counts; shifts past the width.
KERNEL bits(const unsigned* a, const unsigned* b, unsigned* out) {
  const int i = global_index();
  const unsigned x = a[i], y = b[i];
  unsigned* o = out + 12 * i;
  asm("prmt.b32 %0, %1, %2, 0x7250;" : "=r"(o[0]) : "r"(x), "r"(y));
  asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(o[1]) : "r"(x), "r"(y), "r"(0x0ff00ff0));
  asm("bfe.u32 %0, %1, 5, 11;" : "=r"(o[2]) : "r"(x));
  asm("bfe.s32 %0, %1, 20, 20;" : "=r"(o[3]) : "r"(x));
  asm("bfi.b32 %0, %1, %2, 9, 13;" : "=r"(o[4]) : "r"(x), "r"(y));
  asm("brev.b32 %0, %1;" : "=r"(o[5]) : "r"(x));
  asm("bfind.u32 %0, %1;" : "=r"(o[6]) : "r"(x >> (y & 31)));
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(o[7]) : "r"(x), "r"(y), "r"(x));
  asm("shf.r.clamp.b32 %0, %1, %2, %3;" : "=r"(o[8]) : "r"(x), "r"(y), "r"(y & 63));
  asm("shl.b32 %0, %1, %2;" : "=r"(o[9]) : "r"(x), "r"(y & 63));
  asm("shr.s32 %0, %1, %2;" : "=r"(o[10]) : "r"(x), "r"(y & 63));
  o[11] = (unsigned)__builtin_popcount(x) << 16 | (unsigned)__builtin_clz(x | 1);
}

// Four- and two-way integer dot products, saturated sums, averages, differences.
KERNEL integer_simd(const int* a, const int* b, int* out) {
  const int i = global_index();
  int* o = out + 8 * i;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(o[0]) : "r"(a[i]), "r"(b[i]), "r"(1000));
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(o[1]) : "r"(a[i]), "r"(b[i]), "r"(-5));
  asm("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(o[2]) : "r"(a[i]), "r"(b[i]), "r"(3));
  asm("dp2a.hi.u32.u32 %0, %1, %2, %3;" : "=r"(o[3]) : "r"(a[i]), "r"(b[i]), "r"(4));
  asm("add.sat.s32 %0, %1, %2;" : "=r"(o[4]) : "r"(a[i]), "r"(b[i]));
  asm("sub.sat.s32 %0, %1, %2;" : "=r"(o[5]) : "r"(a[i]), "r"(b[i]));
  asm("sad.u32 %0, %1, %2, %3;" : "=r"(o[6]) : "r"(a[i]), "r"(b[i]), "r"(17));
  asm("mad24.lo.s32 %0, %1, %2, %3;" : "=r"(o[7]) : "r"(a[i]), "r"(b[i]), "r"(9));
}

// The four roundings of add, mul, fma, div and sqrt.
#define ROUNDED(mode, slot)                                                                   \
  asm("add." mode ".f32 %0, %1, %2;" : "=f"(o[5 * (slot)]) : "f"(x), "f"(y));                 \
  asm("mul." mode ".f32 %0, %1, %2;" : "=f"(o[5 * (slot) + 1]) : "f"(x), "f"(y));             \
  asm("fma." mode ".f32 %0, %1, %2, %3;" : "=f"(o[5 * (slot) + 2]) : "f"(x), "f"(y), "f"(z)); \
  asm("div." mode ".f32 %0, %1, %2;" : "=f"(o[5 * (slot) + 3]) : "f"(x), "f"(y));             \
  asm("sqrt." mode ".f32 %0, %1;" : "=f"(o[5 * (slot) + 4]) : "f"(__builtin_fabsf(x)));
KERNEL rounding(const float* a, const float* b, const float* c, float* out) {
  const int i = global_index();
  const float x = a[i], y = b[i], z = c[i];
  float* o = out + 20 * i;
  ROUNDED("rn", 0)
  ROUNDED("rz", 1)
  ROUNDED("rm", 2)
  ROUNDED("rp", 3)
}

// Float to integer and back: NaN, overflow and every rounding.
KERNEL conversions(const float* a, const double* b, long long* out) {
  const int i = global_index();
  int w[8];
  unsigned u[2];
  asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(w[0]) : "f"(a[i]));
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(w[1]) : "f"(a[i]));
  asm("cvt.rmi.s32.f32 %0, %1;" : "=r"(w[2]) : "f"(a[i]));
  asm("cvt.rpi.s32.f32 %0, %1;" : "=r"(w[3]) : "f"(a[i]));
  asm("cvt.rzi.u32.f32 %0, %1;" : "=r"(u[0]) : "f"(a[i]));
  asm("cvt.rni.s32.f64 %0, %1;" : "=r"(w[4]) : "d"(b[i]));
  asm("cvt.rzi.u32.f64 %0, %1;" : "=r"(u[1]) : "d"(b[i]));
  long long* o = out + 10 * i;
  for (int j = 0; j < 5; ++j) o[j] = w[j];
  o[5] = u[0];
  o[6] = u[1];
  float narrowed;
  asm("cvt.rz.f32.f64 %0, %1;" : "=f"(narrowed) : "d"(b[i]));
  o[7] = __builtin_bit_cast(int, narrowed);
  asm("cvt.rp.f32.s32 %0, %1;" : "=f"(narrowed) : "r"((int)(i * 2654435761u)));
  o[8] = __builtin_bit_cast(int, narrowed);
  asm("cvt.sat.f32.f32 %0, %1;" : "=f"(narrowed) : "f"(a[i]));
  o[9] = __builtin_bit_cast(int, narrowed);
}

KERNEL double_functions(const double* in, double* out) {
  const int i = global_index();
  const double x = in[i];
  out[6 * i] = polynomials::exp(x);
  out[6 * i + 1] = polynomials::log(__builtin_fabs(x) + 1e-3);
  out[6 * i + 2] = polynomials::sine_or_cosine(x, 0);
  out[6 * i + 3] = polynomials::sine_or_cosine(x, 1);
  out[6 * i + 4] = sqrt(__builtin_fabs(x));
  out[6 * i + 5] = 1.0 / x;
}

// The hardware's single-precision approximations.
KERNEL approximate_functions(const float* in, float* out) {
  const int i = global_index();
  const float x = in[i], positive = fabsf(x) + 1e-3f;
  float* o = out + 7 * i;
  o[0] = __nvvm_ex2_approx_f(x);
  o[1] = __nvvm_lg2_approx_f(positive);
  o[2] = __nvvm_sin_approx_f(x);
  o[3] = __nvvm_cos_approx_f(x);
  o[4] = __nvvm_rsqrt_approx_f(positive);
  o[5] = __nvvm_sqrt_approx_f(positive);
  asm("rcp.approx.f32 %0, %1;" : "=f"(o[6]) : "f"(positive));
}

// Half precision: single, and two in a word.
KERNEL half_arithmetic(const unsigned short* a, const unsigned short* b, const unsigned short* c, unsigned short* out,
                       unsigned* pairs, float* wide) {
  const int i = global_index();
  unsigned short* o = out + 5 * i;
  asm("add.f16 %0, %1, %2;" : "=h"(o[0]) : "h"(a[i]), "h"(b[i]));
  asm("mul.f16 %0, %1, %2;" : "=h"(o[1]) : "h"(a[i]), "h"(b[i]));
  asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(o[2]) : "h"(a[i]), "h"(b[i]), "h"(c[i]));
  asm("sub.f16 %0, %1, %2;" : "=h"(o[3]) : "h"(a[i]), "h"(c[i]));
  asm("neg.f16 %0, %1;" : "=h"(o[4]) : "h"(a[i]));
  const unsigned x = a[i] | (unsigned)b[i] << 16, y = c[i] | (unsigned)a[i] << 16;
  asm("fma.rn.f16x2 %0, %1, %2, %1;" : "=r"(pairs[i]) : "r"(x), "r"(y));
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide[2 * i]) : "h"(a[i]));
  unsigned short narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow) : "f"(wide[2 * i] * 1.001f));
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide[2 * i + 1]) : "h"(narrow));
}

// A dot product of half vectors with single-precision accumulation.
KERNEL half_dot(int n, const unsigned short* a, const unsigned short* b, float* out) {
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += (int)blockDim.x) {
    float x, y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(a[i]));
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(b[i]));
    sum = fmaf(x, y, sum);
  }
  sum = warp_sum(sum);
  if (threadIdx.x == 0) *out = sum;
}

// bfloat16 as the upper half of a float, rounded to nearest even by integer arithmetic.
KERNEL bfloat_product(const unsigned short* a, const unsigned short* b, unsigned short* out) {
  const int i = global_index();
  const float x = __builtin_bit_cast(float, (unsigned)a[i] << 16), y = __builtin_bit_cast(float, (unsigned)b[i] << 16);
  const unsigned product = __builtin_bit_cast(unsigned, x* y);
  out[i] = (unsigned short)((product + 0x7fffu + (product >> 16 & 1)) >> 16);
}

// Subnormals: kept by default, flushed by .ftz.
KERNEL subnormals(const float* a, float* out) {
  const int i = global_index();
  asm("mul.rn.f32 %0, %1, %2;" : "=f"(out[3 * i]) : "f"(a[i]), "f"(0.5f));
  asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(out[3 * i + 1]) : "f"(a[i]), "f"(0.5f));
  asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(out[3 * i + 2]) : "f"(a[i]), "f"(1.1754944e-38f));
}

// Minimum and maximum with NaN and signed zeros; comparisons ordered and unordered.
KERNEL comparisons(const float* a, const float* b, float* extremes, int* truths) {
  const int i = global_index();
  extremes[2 * i] = fminf(a[i], b[i]);
  extremes[2 * i + 1] = fmaxf(a[i], b[i]);
  int t = 0;
  t |= (a[i] < b[i]) << 0 | (a[i] <= b[i]) << 1 | (a[i] == b[i]) << 2 | (a[i] != b[i]) << 3;
  t |= (!(a[i] < b[i])) << 4 | (!(a[i] >= b[i])) << 5 | __builtin_isunordered(a[i], b[i]) << 6;
  truths[i] = t;
}
